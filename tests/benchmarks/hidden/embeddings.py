"""Rows of numbers with labels: texts embedded offline, and the sets that scikit-learn brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from hidden.beside import Figure
from numpy.typing import NDArray
from real_corpora import Labelled

FIGURES = (
    Figure("ari", "ARI", 3),
    Figure("nmi", "NMI", 3),
    Figure("held", "nats a row, held out", 2),
    Figure("passes", "passes", 0),
    Figure("peak", "peak, MB", 0),
)
BUNDLED = ("digits", "wine", "breast_cancer", "iris")


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows in two parts, labels of the first, and as many components as there are labels."""

    training: NDArray[np.float64]
    held_out: NDArray[np.float64]
    labels: NDArray[np.int64]
    components: int


@dataclass(frozen=True, eq=False)
class FoundClusters:
    """What a way says of all rows.

    Parameters
    ----------
    labels : (training rows,) int64
        Cluster of each row of the first part.
    held : float
        Mean log-likelihood of the second part; NaN of what is no density.
    passes : float
        Over the rows; of several starts those of the best.
    """

    labels: NDArray[np.int64]
    held: float
    passes: float


class _Scored:
    """Sources with labels score alike."""

    figures = FIGURES

    def score(self, result: FoundClusters, data: LabelledRows) -> Mapping[str, float]:
        from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

        told = data.labels, result.labels
        return {
            "ari": adjusted_rand_score(*told),
            "nmi": normalized_mutual_info_score(*told),
            "held": result.held,
            "passes": result.passes,
        }


@dataclass(frozen=True)
class EmbeddedTexts(_Scored):
    """Rows of unit length: TF-IDF of labelled texts, its directions learned on two thirds.

    Parameters
    ----------
    path : str
        As of `Labelled`.
    way : {"svd", "projection"}
        Leading singular directions, or seeded random ones.
    dimensions : int
        d.
    """

    path: str
    way: Literal["svd", "projection"] = "svd"
    dimensions: int = 64

    @property
    def name(self) -> str:
        return f"embeddings {Labelled(self.path).name}, {self.way} {self.dimensions}"

    def load(self) -> LabelledRows:
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import Normalizer
        from sklearn.random_projection import GaussianRandomProjection

        corpus = Labelled(self.path).load()
        assert corpus.labels is not None
        chosen = TruncatedSVD if self.way == "svd" else GaussianRandomProjection
        last = chosen(self.dimensions, random_state=0)
        made = make_pipeline(TfidfTransformer(sublinear_tf=True), last, Normalizer())
        training = made.fit_transform(corpus.training.to_csr())
        held_out = made.transform(corpus.held_out.to_csr())
        return LabelledRows(training, held_out, corpus.labels, np.unique(corpus.labels).size)


@dataclass(frozen=True)
class BundledRows(_Scored):
    """A set of scikit-learn, a third held out; columns scaled, but for pixels."""

    which: str
    seed: int = 0

    @property
    def name(self) -> str:
        return f"embeddings {self.which} of scikit-learn"

    def load(self) -> LabelledRows:
        import sklearn.datasets

        load: Any = getattr(sklearn.datasets, f"load_{self.which}")
        rows, labels = load(return_X_y=True)
        order = np.random.default_rng(self.seed).permutation(len(rows))
        held, kept = np.split(order, [len(rows) // 3])
        if self.which != "digits":
            rows = (rows - rows[kept].mean(axis=0)) / rows[kept].std(axis=0)
        found = np.asarray(labels[kept], dtype=np.int64)
        return LabelledRows(rows[kept], rows[held], found, np.unique(labels).size)
