"""A fit of each kind of records beside documents, by its estimator."""

from __future__ import annotations

from typing import Any

from cases import data
from cases.timing import Timed, first_of


class Fit(Timed):
    """An estimator that is fitted on records."""

    records = 0
    name = ""

    def setup(self) -> None:
        self.estimator = first_of(f".sklearn:{self.name}")
        self.X = self.drawn()

    def drawn(self) -> Any:
        """Return the records."""
        raise NotImplementedError


class Views(Fit):
    records, name = 20_000, "MomentViews"

    def drawn(self) -> Any:
        return data.views(self.records)

    def time_fit(self) -> None:
        self.estimator(n_components=4).fit(self.X)


class Sequences(Fit):
    records, name = 2_000, "MomentHMM"

    def drawn(self) -> Any:
        return list(data.sequences(self.records))

    def time_fit(self) -> None:
        self.estimator(n_components=5, n_features=50).fit(self.X)


class Clusters(Fit):
    records, name = 20_000, "MomentGaussianMixture"

    def drawn(self) -> Any:
        return data.clusters(self.records)

    def time_fit(self) -> None:
        self.estimator(n_components=10).fit(self.X)


class Factors(Fit):
    records, name = 20_000, "MomentFactors"

    def drawn(self) -> Any:
        return data.mixed_factors(self.records)

    def time_fit(self) -> None:
        self.estimator(n_components=8).fit(self.X)


class Communities(Fit):
    records, name = 1_200, "MomentCommunities"

    def drawn(self) -> Any:
        return data.graph(self.records)

    def time_fit(self) -> None:
        self.estimator(4, alpha0=0.0).fit(self.X)
