"""MomentLatentTree: tree of hidden states for the columns of a categorical table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.latent_trees.second_start import better_start
from streaming_moments.models.rows import InMemory
from streaming_moments.printing.callers import warn_outside
from streaming_moments.printing.plural import of_number
from streaming_moments.sklearn.estimator import MomentSampler, RandomSeed
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.counts.tables.columns import (
    FEWEST_COLUMNS,
    TableColumns,
    require_countable,
)
from streaming_moments.statistics.halves import odd_by_place

# If the fit chooses n_components, the passes of `polish` can start from latent classes. These
# numbers of classes are tried.
_NUMBERS = (2, 4, 8, 16, 32)

_NAMED = 3  # a warning names at most this many columns

# values of a table, and a mask that is False where a value is missing
Cells: TypeAlias = tuple[NDArray[Any], NDArray[np.bool_]]


class MomentLatentTree(OneToOneFeatureMixin, TransformerMixin, MomentSampler):  # type: ignore[misc]
    """Tree of hidden states for categorical columns, from counts of pairs and triples.

    `fit` fits trees of several shapes, and keeps the one that predicts held-out columns best.
    `model_.shape` names its shape, and `model_.shape_scores` has the scores of all shapes.

    `X` is (rows, V) array_like of texts or whole numbers; None and NaN are missing values. Later
    rows can have values that the first rows lacked, for which the tree has no probability. They
    count as missing, with a warning, and `transform` replaces them by known values. A column with
    only one value is refused, and too many categories raise `BoundExceeded`.

    Parameters
    ----------
    n_components : int, "auto" or "predict"
        Number of states of each hidden node. A node has fewer states if its columns do not separate
        as many. "predict" chooses the smallest number whose score is within the noise of the best,
        "auto" the smallest number after which one more state gains little.
    shape : {"auto", "latent_tree", "mixed_tree", "chow_liu", "latent_classes"}
        "latent_tree" has hidden nodes between the columns, and "mixed_tree" has columns in place of
        some hidden nodes. "chow_liu" is a tree of columns alone, and "latent_classes" is one hidden
        node with `n_components` classes. "auto" compares all four.
    contract : float
        Distance below which hidden nodes are merged.
    smoothing : float
        Weight of a column's overall distribution when it is mixed with each of the column's
        distributions given a state.
    polish : int or "auto"
        Number of passes of expectation maximisation over the rows after the fit. "auto" makes at
        most 20, and stops when all later passes together would change the probabilities by less
        than a twentieth of their error bars. Only `fit` polishes, as `partial_fit` does not have
        all rows. With shape "auto", passes start from latent classes of a pilot of the rows if that
        makes held-out rows more likely. There are `n_components` classes, or 2 to 32 if the fit
        chooses their number.
    keep_statistics : bool
        Whether a pickle after `fit` includes `statistics_`, so that rows can be added later; after
        `partial_fit` it always does.
    verbose : int
        1 prints a line for each step of a fit, with its seconds; 0 prints none.

    Attributes
    ----------
    categories_ : list of (c,) array
        Values of each column, as in the data.
    statistics_ : MomentStatistics
        Statistics of all rows.
    number_search_ : NumberSearch
        Held-out scores of the numbers of states that were tried, if `n_components` was "auto"
        or "predict".
    model_ : LatentTree
        The tree; `model_.described()` gives it as JSON and as text.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : (V,) array of str
        Column names, if X was a frame.

    Examples
    --------
    >>> from streaming_moments.synthetic.tables import latent_tree_table
    >>> planted = latent_tree_table(3000, n_columns=4, n_states=2, n_categories=2, seed=1)
    >>> tree = MomentLatentTree(n_components=2).fit(planted.codes)
    >>> tree.transform([[0, np.nan, 1, 0]]).shape, tree.score(planted.codes) < 0
    ((1, 4), True)
    """

    _begun = ("categories_", "_table")
    # defaults for pickles of earlier versions, which lack these parameters
    polish: int | Literal["auto"] = 0
    shape: str = "latent_tree"

    def __init__(
        self,
        n_components: int | Literal["auto", "predict"] = 2,
        *,
        shape: str = "auto",
        contract: float = 0.15,
        smoothing: float = 1e-3,
        polish: int | Literal["auto"] = 0,
        keep_statistics: bool = False,
        verbose: int | bool = 0,
    ) -> None:
        self.n_components = n_components
        self.shape = shape
        self.contract = contract
        self.smoothing = smoothing
        self.polish = polish
        self.keep_statistics = keep_statistics
        self.verbose = verbose

    def __add__(self, other: Self) -> Self:
        """Return an estimator fitted to the rows of both estimators.

        In each column, the values of both must have the same types.
        """
        known = [getattr(one, "categories_", None) for one in (self, other)]
        # statistics identify values by their text, so they do not see a difference of types
        if None not in known and _types(known[0]) != _types(known[1]):
            raise ForeignStatistics(
                "columns of the two trees have values of different types, such as 1 and '1'; give "
                "rows of the same types, or make one of them by calling `like()` on the other"
            )
        return super().__add__(other)

    def transform(self, X: Any) -> NDArray[Any]:
        """Return (rows, V) rows in which the most likely values replace missing ones.

        The result is int64 if all categories are whole numbers of that range, else objects.
        """
        codes = self._codes(self._read(X))
        return self._values(self.model_.tree.completed(codes)[0])

    def sample(
        self, n_samples: int = 1, random_state: RandomSeed = 0
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Draw (n_samples, V) rows from the tree, with (n_samples, H) states of its hidden nodes.

        Parameters and errors are those of `MomentSampler.sample`.
        """
        codes, states = super().sample(n_samples, random_state)
        return self._values(codes), states

    def _values(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        """Return the categories whose indices are `codes`, as int64 if possible, else objects."""
        columns = [own[codes] for own, codes in zip(self.categories_, codes.T, strict=True)]
        values = [value for own in self.categories_ for value in own]
        whole = all(type(value) is int and -(2**63) <= value < 2**63 for value in values)
        return np.stack(columns, axis=1).astype(np.int64 if whole else object)

    def predict_proba(self, X: Any) -> list[NDArray[np.float64]]:
        """Return (rows, c) probabilities of each column's values, given the row's known values."""
        codes = self._codes(self._read(X))
        return list(self.model_.tree.conditionals(codes))

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return the log-probability of the known values of each row in nats, (rows,)."""
        codes = self._codes(self._read(X))
        return self.model_.tree.log_probabilities(codes)

    def score(self, X: Any, y: object = None) -> float:
        """Return the mean log-probability of a row; higher is better."""
        return float(self.score_samples(X).mean())

    def _begin(self, records: Cells) -> None:
        values, known = records
        names = getattr(self, "feature_names_in_", np.arange(values.shape[1]).astype(str))
        self.categories_ = [
            np.array(sorted(set(column[own].tolist()), key=_order), dtype=object)
            for column, own in zip(values.T, known.T, strict=True)
        ]
        require_countable(map(str, names), map(len, self.categories_))
        texts = tuple(tuple(map(str, own)) for own in self.categories_)
        self._table = TableColumns(tuple(map(str, names)), texts)

    def _fitted(self, statistics: MomentStatistics) -> Self:
        told: dict[str, Any] = {
            "contract": self.contract,
            "smoothing": self.smoothing,
            "shape": self.shape,
        }
        number = self._number(statistics, LatentTree, **told)
        options = LatentTree.Options(topics=number, **told)
        self.statistics_ = statistics
        return self._shown(LatentTree.fit(InMemory((statistics,)), options))

    def _shown(self, model: LatentTree) -> Self:
        self.model_ = model
        return self

    def _started(self, model: LatentTree, batch: CountBatch) -> LatentTree:
        numbers = _NUMBERS if isinstance(self.n_components, str) else ()
        return better_start(model, batch, self._seed, numbers)

    def _read_by_passes(self, records: Cells) -> CountBatch:
        return self._table.batch(self._codes(records))

    def _counted(self, records: Cells, first: int) -> MomentStatistics:
        batch = self._read_by_passes(records)
        batch = replace(batch, halves=odd_by_place(first, batch.documents))
        return MomentStatistics.of(batch, Basis.of_table(self._table))

    def _codes(self, records: Cells) -> NDArray[np.int64]:
        """Return (rows, V) indices of values among the categories; -1 for missing or new values."""
        values, known = records
        found = np.full(values.shape, -1, dtype=np.int64)
        for place, own in enumerate(self.categories_):
            code_of = {value: code for code, value in enumerate(own.tolist())}
            rows = np.flatnonzero(known[:, place])
            found[rows, place] = [code_of.get(value, -1) for value in values[rows, place].tolist()]
        if (new := known & (found < 0)).any():
            self._warn_of_new(values, new)
        return found

    def _warn_of_new(self, values: NDArray[Any], new: NDArray[np.bool_]) -> None:
        places = np.flatnonzero(new.any(axis=0))
        named = [
            f"{values[new[:, place], place][0]!r} in column {self._table.names[place]}"
            for place in places[:_NAMED]
        ]
        more = ", ..." if len(places) > _NAMED else ""
        warn_outside(
            f"{of_number(int(new.sum()), 'value')} not in the first rows of the fit, such as "
            f"{', '.join(named)}{more}: counted as missing; refit to include new categories"
        )

    def _records(self, X: Any, first: bool = False) -> Cells:
        """Return (rows, V) values, whole numbers as integers, and a mask of the known values."""
        given = validate_data(
            self,
            X,
            reset=first,
            dtype=None,
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if first else 1,
            ensure_min_features=FEWEST_COLUMNS if first else 1,
        )
        values = np.asarray(given, dtype=object)
        known = np.array([[one is not None and one == one for one in row] for row in values])
        if given.dtype.kind == "f":
            if (np.asarray(given)[known] % 1).any():
                raise InvalidInput("a column holds fractions, which are not categories; bin them")
            values[known] = [int(one) for one in values[known]]
        return values, known

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # skip checks of scikit-learn whose random tables are not categorical
        tags.input_tags.two_d_array = False
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return cast("Tags", tags)


def _types(categories: Any) -> list[list[type]]:
    return [[type(value) for value in own.tolist()] for own in categories]


def _order(value: Any) -> tuple[str, Any]:
    return type(value).__name__, value
