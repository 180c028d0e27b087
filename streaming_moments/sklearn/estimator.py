"""MomentEstimator: shared steps of all estimators, and `+` for two estimators."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self, TypeAlias, cast

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
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from streaming_moments.arguments import checked, require_fitting
from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.models.numbers.number_search import NumberSearch, searched_by_fits
from streaming_moments.models.passes.families import passes_of
from streaming_moments.models.passes.in_memory import passes_over
from streaming_moments.models.rows import InMemory
from streaming_moments.models.stored import outcome_of, too_few_line
from streaming_moments.plots import Axes, Figure
from streaming_moments.printing.remedies import in_memory
from streaming_moments.printing.short_repr import shown
from streaming_moments.progress import Report, reporter
from streaming_moments.statistics.halves import odd_by_place

RandomSeed: TypeAlias = int | np.random.RandomState | None

_CALLER = 3  # number of stack frames between a warning in `fit` and the caller of `fit`
# attributes that are needed only to count more records, so that a pickle can leave them out
_COUNTED_BY = ("statistics_", "_basis", "_foundation")
_SHAPE = ("n_features_in_", "feature_names_in_")


@partial(checked, spell=in_memory)
class MomentEstimator(BaseEstimator):  # type: ignore[misc]
    """Estimator that fits a model to additive statistics of its records.

    A subclass reads records (`_records`), chooses from the first ones how to count (`_begin`),
    counts (`_counted`) and fits a model (`_fitted`). `_begun` names the attributes that define how
    it counts; two estimators can only be added if these are equal. `_seen` is the word for records
    in the messages of the subclass, such as "rows".

    Unless `keep_statistics` is True, a pickle or copy after `fit` has the model without the
    statistics, which can be hundreds of times larger. After `partial_fit`, `like` and `+`, a pickle
    has both.

    `seed_` is the seed of the fit. With a `random_state` of None, `fit` draws this seed at random.
    To repeat the fit, give `seed_` as `random_state`.
    """

    _begun: ClassVar[tuple[str, ...]] = ("_foundation",)
    _seen: ClassVar[str] = "rows"
    _finds: ClassVar[tuple[str, ...]] = ("auto", "predict")
    _repeated = False  # whether most of the first records are copies of one another
    # if `like` of another estimator made this one: number of records that the other one had counted
    _passed = 0
    _added = False  # whether the statistics come from `partial_fit`, `like` or `+`, not from `fit`
    number_search_: NumberSearch
    # defaults for pickles of earlier versions, which lack these parameters
    keep_statistics: bool = False
    verbose: int | bool = 0
    statistics_: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        checked(cls, in_memory)

    def fit(self, X: Any, y: object = None) -> Self:
        """Fit the model to these records only.

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
            The records do not have the form that the class describes, or a parameter is out of
            range.
        NotIdentifiable
            The records do not separate the requested number of components.
        """
        self._added = False
        self._require_parameters()
        report = self._reporter()
        require_records(X)
        records = self._records(X, first=True)
        self._draw_seed()
        self._begin(records)
        found = self._counted(records, 0)
        report(f"counted {self._seen}")
        self._fitted(found)
        report(self._outcome())
        if few := too_few_line(cast("Any", self).model_, self._seen):
            warnings.warn(few, stacklevel=_CALLER)
        self._finish(records)
        return self

    def partial_fit(self, X: Any, y: object = None) -> Self:
        """Add these records to all earlier ones, and fit the model to all of them.

        The records of the first call determine how all records are counted. Parameters and errors
        are those of `fit`. `polish` must be 0.
        """
        self._require_no_polish()
        if hasattr(self, "model_"):
            self._require_statistics()
        first = "statistics_" not in vars(self)
        self._require_parameters()
        report = self._reporter()
        require_records(X)
        records = self._records(X, first)
        if first:
            self._draw_seed()
            self._begin(records)
        passed = 0 if first else self._passed + self.statistics_.totals.n_documents
        found = self._counted(records, passed)
        report(f"counted {self._seen}")
        self._added = True
        self._fitted(found if first else self.statistics_ + found)
        report(self._outcome())
        return self

    def like(self) -> Self:
        """Return an empty estimator that counts in the same way, so that the two can be added."""
        self._require_statistics()
        empty: Self = clone(self)
        empty._added = True
        for name in (*_SHAPE, "seed_", "_repeated", *self._begun):
            if hasattr(self, name):
                setattr(empty, name, getattr(self, name))
        empty._passed = self._passed + self.statistics_.totals.n_documents
        empty.statistics_ = self.statistics_ - self.statistics_
        return empty

    def __add__(self, other: Self) -> Self:
        """Return an estimator fitted to the records of both, as if one had counted all of them.

        Error bars compare two halves of the rows. For categories, sets and views, the position of
        a row decides to which half it belongs. For these kinds, the result is exactly that of one
        estimator only if `like` of the first estimator made the second.

        Raises
        ------
        ForeignStatistics
            The two estimators count differently; make one by `like` of the other.
        InvalidInput
            An estimator has `polish`, which reads all records again, or was pickled without its
            statistics.
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
                "the two estimators count differently; make one of them by calling `like()` on "
                "the other"
            ) from error
        return self.like()._fitted(together)

    def _require_parameters(self) -> None:
        require_fitting(type(self).__init__, **self.get_params())
        self._require_components()

    def _draw_seed(self) -> None:
        if hasattr(self, "random_state"):
            self.seed_ = seed_of(self.random_state)

    @property
    def _seed(self) -> int:
        # estimators that earlier versions pickled have no `seed_`
        return int(vars(self).get("seed_", getattr(self, "random_state", 0)))

    def _require_components(self) -> None:
        for name, words in (("n_components", self._finds), ("max_components", ())):
            value = getattr(self, name, None)
            if (value is None and not words) or (isinstance(value, str) and value in words):
                continue
            if isinstance(value, bool) or not isinstance(value, Integral):
                others = "".join(f', "{word}"' for word in words[:-1])
                others += "".join(f' or "{word}"' for word in words[-1:])
                raise InvalidInput(f"{name} is {shown(value)}; give a whole number{others}")
            if value < 1:
                raise InvalidInput(f"{name} is {value}; give at least 1")

    def _number(self, statistics: Any, model: Any, **options: Any) -> int:
        """Return `n_components`, or the number that a search for "auto" or "predict" chooses.

        options : options of the fit other than the number of components
        """
        asked: int | str = cast("Any", self).n_components
        self.__dict__.pop("number_search_", None)
        if not isinstance(asked, str):
            return asked
        rows, tried = InMemory((statistics,)), model.Options(topics=1, **options)
        report = self._reporter()
        self.number_search_ = searched_by_fits(model, rows, tried, asked, report=report)
        return self.number_search_.found(asked)

    def _reporter(self) -> Report:
        if not isinstance(self.verbose, Integral):
            raise InvalidInput(
                f"verbose is {shown(self.verbose)}; give 1 to print progress, or 0 for none"
            )
        return reporter(type(self).__name__, self.verbose, "sklearn")

    def _outcome(self) -> str:
        return outcome_of(cast("Any", self).model_, self._seen)

    def _records(self, X: Any, first: bool = False) -> Any:
        """Return X in the form that `_counted` takes.

        `first` means that no records were read before. X then determines the number of columns.
        """
        raise NotImplementedError

    def _begin(self, records: Any) -> None:
        raise NotImplementedError

    def _counted(self, records: Any, first: int) -> Any:
        """Return statistics of records; `first` is the number of records counted earlier."""
        raise NotImplementedError

    def _halves(self, first: int, number: int) -> NDArray[np.bool_] | None:
        """Return a mask of those of `number` records that are in the odd half of the data, or None.

        None means that the content of a record decides to which half it belongs. But if most
        records are copies of one another, the mask assigns them by their positions instead.
        """
        return odd_by_place(first, number) if self._repeated else None

    def _fitted(self, statistics: Any) -> Self:
        raise NotImplementedError

    def _finish(self, records: Any) -> None:
        """Polish the model by passes over all records of a `fit`, with all threads."""
        own, foundation = cast("Any", self), getattr(self, "_foundation", None)
        passes = getattr(self, "polish", 0)
        if passes:
            threads, report = get_num_threads(), self._reporter()
            batch = self._read_by_passes(records)
            model = self._started(own.model_, batch)
            own._shown(
                passes_over(model, foundation, [batch], passes, threads=threads, report=report)
            )

    def _started(self, model: Any, batch: Any) -> Any:
        """Return the model from which the passes of `polish` start.

        It is the fitted model, or for some models one that is fitted to a sample of the records.
        """
        second = passes_of(type(model)).second
        if second is None:
            return model
        foundation, passes = getattr(self, "_foundation", None), cast("Any", self).polish
        return second.start(model, batch, foundation, passes, self._seed)

    def _read_by_passes(self, records: Any) -> Any:
        """Return all records as a batch in the form that the passes of `polish` read."""
        return records

    def _read(self, X: Any) -> Any:
        check_is_fitted(self, "model_")
        require_records(X)
        return self._records(X)

    def _require_statistics(self) -> None:
        if "model_" in vars(self) and "statistics_" not in vars(self):
            raise InvalidInput(self._without_statistics())
        check_is_fitted(self, "statistics_")

    def _without_statistics(self) -> str:
        return (
            f"this {type(self).__name__} was pickled or copied after fit without its statistics, "
            "so nothing can be added to it; fit it with keep_statistics=True, or by partial_fit"
        )

    def __getattr__(self, name: str) -> Any:
        if name == "statistics_" and "model_" in vars(self):
            raise AttributeError(self._without_statistics())
        if "model_" not in vars(self) and name.endswith("_") and not name.startswith("_"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted, so it has no {name}; call fit first"
            )
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
                f"polish is {passes}, and passes need all {self._seen} again, which only fit has; "
                f"give all {self._seen} to fit, or set polish to 0"
            )


class MomentSampler(MomentEstimator):
    """Estimator of a model from which records can be drawn."""

    def sample(
        self, n_samples: int = 1, random_state: RandomSeed = 0
    ) -> tuple[Any, NDArray[np.int64]]:
        """Draw rows from a mixture, or one sequence from a chain.

        Parameters
        ----------
        n_samples : int
            Number of rows or symbols.
        random_state : int, RandomState or None
            Seed; None draws a new one.

        Returns
        -------
        tuple
            Rows (n_samples, d) or symbols (n_samples,), and the component or state of each,
            (n_samples,).

        Raises
        ------
        InvalidInput
            `n_samples` is below 1.
        """
        check_is_fitted(self, "model_")
        if n_samples < 1:
            raise InvalidInput(f"n_samples is {n_samples}; give at least 1")
        found: tuple[Any, NDArray[np.int64]] = self.model_.sample(n_samples, seed_of(random_state))
        return found


class MomentMixture(DensityMixin, MomentSampler):  # type: ignore[misc]
    """Estimator of a mixture."""

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the most likely component of each row, (n,)."""
        records = self._read(X)
        found: NDArray[np.int64] = self.model_.assign(records)
        return found

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each component given each row, (n, k)."""
        records = self._read(X)
        found: NDArray[np.float64] = self.model_.posterior(records)
        return found

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the log-likelihood of each row, (n,)."""
        records = self._read(X)
        found: NDArray[np.float64] = self.model_.log_likelihoods(records)
        return found

    def score(self, X: Any, y: object = None) -> float:
        """Return the mean log-likelihood of a row."""
        return float(self.score_samples(X).mean())

    def fit_predict(self, X: Any, y: object = None) -> NDArray[np.int64]:
        """Fit the model to these rows and return the most likely component of each, (n,)."""
        return self.fit(X).predict(X)

    def plot(
        self,
        number: int = 8,
        names: Sequence[str] | None = None,
        figure: Figure | None = None,
    ) -> list[Axes]:
        """Draw a panel for each component, with the `number` features that set it apart.

        Parameters and errors are those of the `plot` of `model_`. Columns of a fitted data frame
        give the names.
        """
        check_is_fitted(self, "model_")
        called = getattr(self, "feature_names_in_", None) if names is None else names
        panels: list[Axes] = self.model_.plot(number, called, figure)
        return panels

    def bic(self, X: Any) -> float:
        """Return the Bayesian information criterion of rows; lower is better."""
        logs = self.score_samples(X)
        return float(self.model_.n_parameters * np.log(len(logs)) - 2 * logs.sum())

    def aic(self, X: Any) -> float:
        """Return Akaike's information criterion of rows; lower is better."""
        logs = self.score_samples(X)
        return float(2 * self.model_.n_parameters - 2 * logs.sum())


class MomentTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MomentEstimator):  # type: ignore[misc]
    """Estimator whose `transform` returns a float64 number for each of its `components_`."""

    components_: NDArray[np.float64]

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return cast("Tags", tags)


def require_records(X: Any) -> None:
    """Raise InvalidInput for None, and for an iterator, which can be read only once."""
    if X is None:
        raise InvalidInput("X has no records; give some")
    if isinstance(X, Iterator):
        raise InvalidInput(f"X is of type {type(X).__name__}; give list(X), or a matrix")


def seed_of(random_state: RandomSeed) -> int:
    """Return a seed of at least 0; draw one for None or a RandomState, as scikit-learn does.

    Examples
    --------
    >>> seed_of(3), seed_of(np.random.RandomState(0))
    (3, 209652396)
    """
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return int(check_random_state(random_state).randint(2**31 - 1))
    whole = isinstance(random_state, Integral) and not isinstance(random_state, bool)
    if not whole or random_state < 0:
        raise InvalidInput(
            f"random_state is {shown(random_state)}; give a seed of at least 0, a RandomState of "
            "NumPy, or None"
        )
    return int(random_state)
