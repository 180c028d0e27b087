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

_NUMBERS = (2, 4, 8, 16, 32)  # most latent classes, if the fit chooses their number

_NAMED = 3  # most columns that a warning names

Cells: TypeAlias = tuple[NDArray[Any], NDArray[np.bool_]]  # values, and a mask of the known ones


class MomentLatentTree(OneToOneFeatureMixin, TransformerMixin, MomentSampler):  # type: ignore[misc]
    """Tree of hidden states for categorical columns, from counts of pairs and triples.

    Trees of several shapes are fitted. The model is the one that predicts held-out columns best:
    `model_.shape` names it, `model_.shape_scores` has the scores of all.

    `X` is (rows, V) array_like of texts or whole numbers; None and NaN are missing. Values that
    the first rows lacked count as missing, with a warning, because the tree has no probability for
    them; `transform` then replaces them. A column with one value is
    refused, and too many categories raise `BoundExceeded`.

    Parameters
    ----------
    n_components : int, "auto" or "predict"
        Number of states of each hidden node; nodes between columns that separate fewer have fewer.
        "predict": the fewest with the best score; "auto": where one more gains little.
    shape : {"auto", "latent_tree", "mixed_tree", "chow_liu", "latent_classes"}
        Hidden nodes between the columns, columns in place of some of them, columns alone
        (Chow-Liu's tree), or one hidden node with `n_components` classes; "auto" compares them.
    contract : float
        Distance below which hidden nodes are merged.
    smoothing : float
        Share of each column's own distribution mixed into its distribution given a state.
    polish : int or "auto"
        Passes of expectation maximisation over the rows after the fit; "auto": until all later ones
        would change the tables by less than a twentieth of their error bars, at most 20. Only in
        `fit`, as `partial_fit` does not have all rows. With shape "auto", passes start from latent
        classes of a pilot of the rows if that makes held-out rows more likely: from `n_components`
        classes, or from 2 to 32 if the fit chooses the number.
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
        With "auto" or "predict", held-out scores of all numbers tried.
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
    # pickles of earlier versions lack them
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
        """Estimator fitted to the rows of both; their values must have the same types."""
        known = [getattr(one, "categories_", None) for one in (self, other)]
        # statistics identify values by their text, so they do not see a difference of types
        if None not in known and _types(known[0]) != _types(known[1]):
            raise ForeignStatistics(
                "columns of the two trees have values of different types, such as 1 and '1'; give "
                "rows of the same types, or make one of them by calling `like()` on the other"
            )
        return super().__add__(other)

    def transform(self, X: Any) -> NDArray[Any]:
        """(rows, V) rows with missing values replaced by the most likely ones.

        The result is int64 if all values fit, else objects.
        """
        codes = self._codes(self._read(X))
        return self._values(self.model_.tree.completed(codes)[0])

    def sample(
        self, n_samples: int = 1, random_state: RandomSeed = 0
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """(n_samples, V) rows drawn from the tree, and (n_samples, H) states of its hidden nodes.

        Parameters and errors as for other estimators.
        """
        codes, states = super().sample(n_samples, random_state)
        return self._values(codes), states

    def _values(self, codes: NDArray[np.int64]) -> NDArray[Any]:
        """Values of codes, as int64 if all values fit, else as objects."""
        columns = [own[codes] for own, codes in zip(self.categories_, codes.T, strict=True)]
        values = [value for own in self.categories_ for value in own]
        whole = all(type(value) is int and -(2**63) <= value < 2**63 for value in values)
        return np.stack(columns, axis=1).astype(np.int64 if whole else object)

    def predict_proba(self, X: Any) -> list[NDArray[np.float64]]:
        """(rows, c) for each column: its distribution given the known values of each row."""
        codes = self._codes(self._read(X))
        return list(self.model_.tree.conditionals(codes))

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """(rows,) log-probability of the known values of each row, in nats."""
        codes = self._codes(self._read(X))
        return self.model_.tree.log_probabilities(codes)

    def score(self, X: Any, y: object = None) -> float:
        """Mean log-probability of a row; higher is better."""
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
        """(rows, V) index of each value among the categories, or -1."""
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
        """(rows, V) values, with whole numbers as integers, and a mask of the known ones."""
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
        # checks of scikit-learn draw tables that are not categorical
        tags.input_tags.two_d_array = False
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return cast("Tags", tags)


def _types(categories: Any) -> list[list[type]]:
    return [[type(value) for value in own.tolist()] for own in categories]


def _order(value: Any) -> tuple[str, Any]:
    return type(value).__name__, value
