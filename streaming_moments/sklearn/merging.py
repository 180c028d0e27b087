"""Merging: what estimators have seen apart, as one that has seen all."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from streaming_moments.arguments import checked
from streaming_moments.errors import ForeignStatistics, InvalidInput

_COUNTED_BY = ("statistics_", "_basis", "_foundation")  # what a model is read without
_SHAPE = ("n_features_in_", "feature_names_in_")


def require_components(estimator: Any) -> None:
    """Refuse a number of components below 1, by the name that the caller gave it.

    Raises
    ------
    InvalidInput
        Names the parameter.
    """
    for name in ("n_components", "max_components"):
        value = getattr(estimator, name, None)
        if isinstance(value, Integral) and value < 1:
            raise InvalidInput(f"{name} is {value}; give at least 1")


class Merging(BaseEstimator):  # type: ignore[misc]
    """An estimator whose `statistics_` are added up; `_fitted` makes a model of them.

    `_begun` names what says how it counts, which is the same of all that are added; `_seen` is what
    it calls its records.

    A pickle, or a copy, of what `fit` gave holds the model without its statistics, which can be
    hundreds of times larger, unless `keep_statistics` is True; after `partial_fit`, `like` and `+`
    it holds both.
    """

    _begun: ClassVar[tuple[str, ...]] = ("_foundation",)
    _seen: ClassVar[str] = "rows"
    _added = False  # whether the records came by more than a fit
    keep_statistics: bool = False  # of pickles of 0.2.0, which have no such parameter
    statistics_: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        checked(cls)

    def like(self) -> Self:
        """One that has seen nothing, and counts as this does: what it will see can be added."""
        self._require_statistics()
        empty: Self = clone(self)
        empty._added = True
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
            One has `polish`, which needs all records again, or was pickled without statistics.
        """
        if type(other) is not type(self):
            return NotImplemented
        for one in (self, other):
            one._require_statistics()
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

    def _is_first(self) -> bool:
        """Whether `partial_fit` has seen nothing yet; what it sees from now on is kept.

        Raises
        ------
        InvalidInput
            It was fitted, and its pickle had no statistics.
        """
        if hasattr(self, "model_"):
            self._require_statistics()
        self._added = True
        return "statistics_" not in vars(self)

    def _require_statistics(self) -> None:
        if "model_" in vars(self) and "statistics_" not in vars(self):
            raise InvalidInput(self._without_statistics())
        check_is_fitted(self, "statistics_")

    def _without_statistics(self) -> str:
        return (
            f"this {type(self).__name__} has no statistics, as it was pickled or copied after fit, "
            "so nothing can be added to it; fit it with keep_statistics=True, or by partial_fit"
        )

    def __getattr__(self, name: str) -> Any:
        if name == "statistics_" and "model_" in vars(self):
            raise AttributeError(self._without_statistics())
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if self.keep_statistics or self._added or "model_" not in state:
            return state
        return {name: value for name, value in state.items() if name not in _COUNTED_BY}

    def _require_no_polish(self) -> None:
        passes = getattr(self, "polish", 0)
        if passes:
            raise InvalidInput(
                f"polish is {passes}, and passes need all {self._seen} again; fit them at once, or "
                "give polish 0"
            )
