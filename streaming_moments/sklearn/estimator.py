"""MomentEstimator: the steps that all estimators share, and how two become one."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self, cast

import numpy as np
from numba import get_num_threads
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    DensityMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from streaming_moments.arguments import checked, require_fitting
from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.models.numbers.number_search import NumberSearch, searched_by_fits
from streaming_moments.models.passes.in_memory import passes_over
from streaming_moments.models.rows import InMemory
from streaming_moments.models.stored import outcome_of
from streaming_moments.progress import Report, reporter

_COUNTED_BY = ("statistics_", "_basis", "_foundation")  # what a model is read without
_SHAPE = ("n_features_in_", "feature_names_in_")


@checked
class MomentEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that fits a model to statistics, which are added up over its records.

    A subclass reads records (`_records`), says by the first ones how it counts (`_begin`), counts
    (`_counted`) and makes a model (`_fitted`). `_begun` names the attributes that say how it
    counts, which are the same of all estimators that are added; `_seen` is its word for records.

    A pickle, or a copy, of what `fit` gave holds the model without its statistics, which can be
    hundreds of times larger, unless `keep_statistics` is True; after `partial_fit`, `like` and `+`
    it holds both.
    """

    _begun: ClassVar[tuple[str, ...]] = ("_foundation",)
    _seen: ClassVar[str] = "rows"
    _finds: ClassVar[tuple[str, ...]] = ("auto", "predict")
    _added = False  # whether the records came by more than a fit
    number_search_: NumberSearch
    # pickles of earlier versions have no such parameters
    keep_statistics: bool = False
    verbose: int | bool = 0
    statistics_: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        checked(cls)

    def fit(self, X: Any, y: object = None) -> Self:
        """Fit the model to these records, and forget what was seen before.

        Parameters
        ----------
        X : array_like, sparse matrix or list
            Records, as the class describes them.
        y : object
            Not used.

        Returns
        -------
        Self
            This estimator.

        Raises
        ------
        InvalidInput
            Records of another form, or a parameter out of range.
        NotIdentifiable
            The records do not tell so many components apart.
        """
        self._added, report = False, self._reporter()
        self._require_parameters()
        records = self._records(X, first=True)
        self._begin(records)
        found = self._counted(records)
        report(f"counted {self._seen}")
        self._fitted(found)
        report(self._outcome())
        self._finish(records)
        return self

    def partial_fit(self, X: Any, y: object = None) -> Self:
        """Fit the model to these records and all before, counted as the first were.

        Parameters and errors as of `fit`; a `polish` above 0 is refused.
        """
        self._require_no_polish()
        if hasattr(self, "model_"):
            self._require_statistics()
        first, report = "statistics_" not in vars(self), self._reporter()
        self._require_parameters()
        records = self._records(X, first)
        if first:
            self._begin(records)
        found = self._counted(records)
        report(f"counted {self._seen}")
        self._added = True
        self._fitted(found if first else self.statistics_ + found)
        report(self._outcome())
        return self

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

    def _require_parameters(self) -> None:
        require_fitting(type(self).__init__, **self.get_params())
        self._require_components()

    def _require_components(self) -> None:
        for name, words in (("n_components", self._finds), ("max_components", ())):
            value = getattr(self, name, None)
            if value is None or (isinstance(value, str) and value in words):
                continue
            if isinstance(value, bool) or not isinstance(value, Integral):
                others = "".join(f' or "{word}"' for word in words)
                raise InvalidInput(f"{name} is {value!r}; give a whole number{others}")
            if value < 1:
                raise InvalidInput(f"{name} is {value}; give at least 1")

    def _number(self, statistics: Any, model: Any, **options: Any) -> int:
        """n_components, or what is found by `number_search_`, with other options of the model."""
        asked: int | str = cast("Any", self).n_components
        self.__dict__.pop("number_search_", None)
        if not isinstance(asked, str):
            return asked
        rows, tried = InMemory((statistics,)), model.Options(topics=1, **options)
        report = self._reporter()
        self.number_search_ = searched_by_fits(model, rows, tried, asked, report=report)
        return self.number_search_.found(asked)

    def _reporter(self) -> Report:
        return reporter(type(self).__name__, self.verbose, "sklearn")

    def _outcome(self) -> str:
        return outcome_of(cast("Any", self).model_, self._seen)

    def _records(self, X: Any, first: bool = False) -> Any:
        """X as it is counted; the first records say how wide all are."""
        raise NotImplementedError

    def _begin(self, records: Any) -> None:
        raise NotImplementedError

    def _counted(self, records: Any) -> Any:
        raise NotImplementedError

    def _fitted(self, statistics: Any) -> Self:
        raise NotImplementedError

    def _finish(self, records: Any) -> None:
        """What `fit` alone does with its records after the fit."""

    def _polished(self, records: Any) -> Any:
        """The model after `polish` passes over a batch of records, by all threads."""
        own, foundation = cast("Any", self), getattr(self, "_foundation", None)
        threads, report = get_num_threads(), self._reporter()
        return passes_over(
            own.model_, foundation, [records], own.polish, threads=threads, report=report
        )

    def _read(self, X: Any) -> Any:
        check_is_fitted(self, "model_")
        return self._records(X)

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


class MomentMixture(DensityMixin, MomentEstimator):  # type: ignore[misc]
    """An estimator of a mixture: what its `model_` says of rows."""

    def predict(self, X: Any) -> NDArray[np.int64]:
        """(n,) the likeliest component of each row."""
        records = self._read(X)
        found: NDArray[np.int64] = self.model_.assign(records)
        return found

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """(n, k) probability of each component given each row."""
        records = self._read(X)
        found: NDArray[np.float64] = self.model_.posterior(records)
        return found

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """(n,) log-likelihood of each row."""
        records = self._read(X)
        found: NDArray[np.float64] = self.model_.log_likelihoods(records)
        return found

    def score(self, X: Any, y: object = None) -> float:
        """Mean log-likelihood of a row."""
        return float(self.score_samples(X).mean())


class MomentTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MomentEstimator):  # type: ignore[misc]
    """An estimator whose `transform` gives a float64 number for each of its `components_`."""

    components_: NDArray[np.float64]

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return cast("Tags", tags)
