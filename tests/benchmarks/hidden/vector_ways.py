"""Clusters of rows of numbers: ours, and those of scikit-learn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

from hidden.embeddings import FoundClusters, LabelledRows
from ours import OURS

from streaming_moments.sklearn import MomentGaussianMixture
from streaming_moments.synthetic.mixtures import mixture_rows


@dataclass(frozen=True)
class OurMixture:
    """MomentGaussianMixture, with passes of expectation maximisation after the one of the sums."""

    covariance: str = "spherical"
    passes: int = 0
    seed: None = None

    @property
    def name(self) -> str:
        return f"{OURS}, {self.covariance}, {self.passes} passes"

    def prepare(self, data: LabelledRows) -> LabelledRows:
        drawn = mixture_rows(200, 4, 2, separation=9.0)
        # kernels are compiled once and kept
        MomentGaussianMixture(2, covariance_type=self.covariance, polish=1).fit(drawn.rows)
        return data

    def fit(self, prepared: LabelledRows) -> MomentGaussianMixture:
        asked = {"covariance_type": self.covariance, "polish": self.passes}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of variances near 0
            return MomentGaussianMixture(prepared.components, **asked).fit(prepared.training)

    def result(
        self, fitted: MomentGaussianMixture, prepared: LabelledRows
    ) -> tuple[FoundClusters, float]:
        held = fitted.score(prepared.held_out)
        labels = fitted.predict(prepared.training)
        return FoundClusters(labels, held, 1 + self.passes), fitted.score(prepared.training)


@dataclass(frozen=True)
class SklearnMixture:
    """GaussianMixture, the best of five starts from K-means."""

    covariance: str = "spherical"
    seed: int = 0

    @property
    def name(self) -> str:
        return f"GaussianMixture, {self.covariance}, n_init 5"

    def prepare(self, data: LabelledRows) -> LabelledRows:
        return data

    def fit(self, prepared: LabelledRows) -> Any:
        from sklearn.mixture import GaussianMixture

        own = {"covariance_type": self.covariance, "n_init": 5, "random_state": self.seed}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what did not converge
            return GaussianMixture(prepared.components, **own).fit(prepared.training)

    def result(self, fitted: Any, prepared: LabelledRows) -> tuple[FoundClusters, float]:
        held = float(fitted.score(prepared.held_out))
        found = FoundClusters(fitted.predict(prepared.training), held, fitted.n_iter_)
        return found, float(fitted.score(prepared.training))


@dataclass(frozen=True)
class SklearnMeans:
    """KMeans or MiniBatchKMeans, the best of ten starts, or of three."""

    which: Literal["KMeans", "MiniBatchKMeans"] = "KMeans"
    seed: int = 0

    @property
    def name(self) -> str:
        return f"{self.which}, n_init {self._starts}"

    @property
    def _starts(self) -> int:
        return 10 if self.which == "KMeans" else 3

    def prepare(self, data: LabelledRows) -> LabelledRows:
        return data

    def fit(self, prepared: LabelledRows) -> Any:
        import sklearn.cluster

        made: Any = getattr(sklearn.cluster, self.which)
        asked = {"n_init": self._starts, "random_state": self.seed}
        return made(prepared.components, **asked).fit(prepared.training)

    def result(self, fitted: Any, prepared: LabelledRows) -> tuple[FoundClusters, float]:
        found = FoundClusters(fitted.labels_, float("nan"), fitted.n_iter_)
        return found, -float(fitted.inertia_)
