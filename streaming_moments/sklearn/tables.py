"""MomentLatentTree: hidden states between the columns of a categorical table."""

from __future__ import annotations

from typing import Any, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.rows import InMemory
from streaming_moments.sklearn.estimator import MomentEstimator
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.counts.tables.columns import (
    FEWEST_COLUMNS,
    TableColumns,
    require_countable,
)

Cells: TypeAlias = tuple[NDArray[Any], NDArray[np.bool_]]  # (rows, V) values, and which are known


class MomentLatentTree(OneToOneFeatureMixin, TransformerMixin, MomentEstimator):  # type: ignore[misc]
    """A tree of hidden states between categorical columns, from the counts of pairs and triples.

    `X` is (rows, V) array_like of texts or whole numbers; None and NaN are missing. After
    `partial_fit`, values that the first rows had not are missing. A column of one value is refused,
    and more categories than pairs and triples are counted of are `BoundExceeded`.

    Parameters
    ----------
    n_components : int
        States of each hidden node.
    contract : float
        Hidden nodes closer than so much are one.
    smoothing : float
        Share of each column's own distribution in that given a state.
    keep_statistics : bool
        Whether a pickle of what `fit` gave holds `statistics_`, so that more rows can be added
        to it; after `partial_fit` it always does.
    verbose : int
        1 prints a line for each step of a fit, with its seconds; 0 prints none.

    Attributes
    ----------
    categories_ : list of (c,) array
        Values of each column, as in the data.
    statistics_ : MomentStatistics
        Of all rows that were seen.
    model_ : LatentTree
        The tree; `model_.described()` has it as JSON and as text.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : (V,) array of str
        Columns of the frame it was fitted on, where it was one.

    Examples
    --------
    >>> from streaming_moments.synthetic.tables import latent_tree_table
    >>> planted = latent_tree_table(3000, n_columns=4, n_states=2, n_categories=2, seed=1)
    >>> tree = MomentLatentTree(n_components=2).fit(planted.codes)
    >>> tree.transform([[0, np.nan, 1, 0]]).shape, tree.score(planted.codes) < 0
    ((1, 4), True)
    """

    _begun = ("categories_", "_table")

    def __init__(
        self,
        n_components: int = 2,
        *,
        contract: float = 0.15,
        smoothing: float = 1e-3,
        keep_statistics: bool = False,
        verbose: int | bool = 0,
    ) -> None:
        self.n_components = n_components
        self.contract = contract
        self.smoothing = smoothing
        self.keep_statistics = keep_statistics
        self.verbose = verbose

    def __add__(self, other: Self) -> Self:
        """As of any estimator; values are read by their types, which are the same."""
        known = [getattr(one, "categories_", None) for one in (self, other)]
        # statistics know values by how they are written
        if None not in known and _types(known[0]) != _types(known[1]):
            raise ForeignStatistics(
                "columns of the two trees hold values of other types, such as 1 and '1'; give rows "
                "of the same types, or begin one with `like()` of the other"
            )
        return super().__add__(other)

    def transform(self, X: Any) -> NDArray[Any]:
        """(rows, V) the rows, with the likeliest value given what is known where one is missing.

        Of whole numbers that int64 holds int64, else objects.
        """
        codes = self._codes(self._read(X))
        completed, _ = self.model_.tree.completed(codes)
        columns = [own[codes] for own, codes in zip(self.categories_, completed.T, strict=True)]
        values = [value for own in self.categories_ for value in own]
        whole = all(type(value) is int and -(2**63) <= value < 2**63 for value in values)
        return np.stack(columns, axis=1).astype(np.int64 if whole else object)

    def predict_proba(self, X: Any) -> list[NDArray[np.float64]]:
        """(rows, c) of each column, its distribution given what is known of each row."""
        codes = self._codes(self._read(X))
        return list(self.model_.tree.conditionals(codes))

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """(rows,) log-probability of what is known of each row, nats."""
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
        options = LatentTree.Options(  # type: ignore[call-arg]
            topics=self.n_components, contract=self.contract, smoothing=self.smoothing
        )
        self.model_ = LatentTree.fit(InMemory((statistics,)), options)
        self.statistics_ = statistics
        return self

    def _counted(self, records: Cells) -> MomentStatistics:
        basis = Basis.of_table(self._table)
        return MomentStatistics.of(self._table.batch(self._codes(records)), basis)

    def _codes(self, records: Cells) -> NDArray[np.int64]:
        """(rows, V) place of each value among the categories, -1 where it is none of them."""
        values, known = records
        found = np.full(values.shape, -1, dtype=np.int64)
        for place, own in enumerate(self.categories_):
            code_of = {value: code for code, value in enumerate(own.tolist())}
            rows = np.flatnonzero(known[:, place])
            found[rows, place] = [code_of.get(value, -1) for value in values[rows, place].tolist()]
        return found

    def _records(self, X: Any, first: bool = False) -> Cells:
        """(rows, V) values, whole numbers as such, and whether each is known."""
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
                raise InvalidInput("a column holds fractions, which are no categories; bin them")
            values[known] = [int(one) for one in values[known]]
        return values, known

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # of categories of three columns: what scikit-learn's own checks draw are other tables
        tags.input_tags.two_d_array = False
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return cast("Tags", tags)


def _types(categories: Any) -> list[list[type]]:
    return [[type(value) for value in own.tolist()] for own in categories]


def _order(value: Any) -> tuple[str, Any]:
    return type(value).__name__, value
