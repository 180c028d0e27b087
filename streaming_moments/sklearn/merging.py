"""Merging: what estimators have seen apart, as one that has seen all."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from streaming_moments.errors import ForeignStatistics, InvalidInput

_SHAPE = ("n_features_in_", "feature_names_in_")


class Merging(BaseEstimator):  # type: ignore[misc]
    """An estimator whose `statistics_` are added up; `_fitted` makes a model of them.

    `_begun` names what says how it counts, which is the same of all that are added; `_seen` is what
    it calls its records.
    """

    _begun: ClassVar[tuple[str, ...]] = ("_foundation",)
    _seen: ClassVar[str] = "rows"
    statistics_: Any

    def like(self) -> Self:
        """One that has seen nothing, and counts as this does: what it will see can be added."""
        check_is_fitted(self, "statistics_")
        empty: Self = clone(self)
        for name in (*_SHAPE, *self._begun):
            if hasattr(self, name):
                setattr(empty, name, getattr(self, name))
        empty.statistics_ = self.statistics_ - self.statistics_
        return empty

    def __add__(self, other: Self) -> Self:
        """The model of what both have seen, exactly as if one had.

        Raises
        ------
        ForeignStatistics
            They were not begun alike: make one with `like` of the other.
        InvalidInput
            One has `polish`, which needs all records again.
        """
        if type(other) is not type(self):
            return NotImplemented
        for one in (self, other):
            check_is_fitted(one, "statistics_")
            one._require_no_polish()
        try:
            together = self.statistics_ + other.statistics_
        except ForeignStatistics as error:
            raise ForeignStatistics(
                "the two estimators were begun on their own; begin one with `like()` of the other"
            ) from error
        return self.like()._fitted(together)

    def _fitted(self, statistics: Any) -> Self:
        raise NotImplementedError

    def _require_no_polish(self) -> None:
        passes = getattr(self, "polish", 0)
        if passes:
            raise InvalidInput(
                f"polish is {passes}, and passes need all {self._seen} again; fit them at once, or "
                "give polish 0"
            )
