"""Peers of real text that are no latent Dirichlet allocation: NMF and the biterm topic model."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from methods import Fitted, Prior
from numpy.typing import NDArray

from streaming_moments import CountBatch

_BITERM_ETA, _WINDOW = 0.01, 15  # its defaults


@dataclass(frozen=True)
class Nmf:
    """scikit-learn's NMF: Kullback-Leibler on counts, or Frobenius, its default, on TF-IDF."""

    loss: Literal["kullback-leibler", "frobenius"] = "kullback-leibler"
    iterations: int = 1000
    seed: None = None  # its start is that of a singular value decomposition, the same each time

    @property
    def name(self) -> str:
        how = "KL" if self.loss == "kullback-leibler" else "TF-IDF"
        return f"NMF, {how}"

    def prepare(self, batch: CountBatch, n_topics: int, prior: Prior) -> Any:
        import sklearn.decomposition
        import sklearn.feature_extraction.text  # noqa: F401 - imported outside the clock

        return batch.to_csr().astype(np.float64), n_topics

    def fit(self, prepared: Any) -> Any:
        from sklearn.decomposition import NMF
        from sklearn.feature_extraction.text import TfidfTransformer

        matrix, k = prepared
        likely = self.loss == "kullback-leibler"
        model = NMF(
            k,
            beta_loss=self.loss,
            solver="mu" if likely else "cd",
            init="nndsvda" if likely else None,
            max_iter=self.iterations,
            random_state=0,
        )
        weighted = matrix if likely else TfidfTransformer().fit_transform(matrix)
        return model, model.fit_transform(weighted)

    def result(self, fitted: Any, prepared: Any) -> Fitted:
        model, _ = fitted
        topics = model.components_.T + 1e-12
        return Fitted(topics / topics.sum(axis=0), None, -float(model.reconstruction_err_))

    def proportions(self, fitted: Any, prepared: Any) -> NDArray[np.float64]:
        model, shares = fitted
        return np.asarray(shares * model.components_.sum(axis=1))


@dataclass(frozen=True)
class Biterm:
    """bitermplus: Gibbs sampling of the biterm topic model (Yan, Guo, Lan, Cheng 2013).

    Counts keep no order: pairs are of words that are near one another in a random order. For short
    texts alone.
    """

    iterations: int = 600
    seed: int = 1

    @property
    def name(self) -> str:
        return f"biterm model, {self.iterations:,} iterations"

    def prepare(self, batch: CountBatch, n_topics: int, prior: Prior) -> Any:
        import bitermplus

        rng = np.random.default_rng(self.seed)
        documents = [
            rng.permutation(np.repeat(batch.words[a:b], batch.counts[a:b]))
            for a, b in pairwise(batch.indptr.tolist())
        ]
        words = np.array([str(word) for word in range(batch.n_words)])
        # its authors' alpha
        model = bitermplus.BTM(
            batch.to_csr(),
            words,
            T=n_topics,
            alpha=50 / n_topics,
            beta=_BITERM_ETA,
            seed=self.seed,
            win=_WINDOW,
        )
        return model, documents

    def fit(self, prepared: Any) -> Any:
        import bitermplus

        model, documents = prepared
        pairs = bitermplus.get_biterms(documents, win=_WINDOW, as_array=True)
        model.fit(pairs, iterations=self.iterations, verbose=False)
        return model

    def result(self, fitted: Any, prepared: Any) -> Fitted:
        topics = np.asarray(fitted.matrix_topics_words_).T
        return Fitted(topics / topics.sum(axis=0), None)

    def proportions(self, fitted: Any, prepared: Any) -> NDArray[np.float64]:
        return np.asarray(fitted.transform(prepared[1], verbose=False))
