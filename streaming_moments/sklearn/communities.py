"""MomentCommunities: mixed memberships of the nodes of a graph, as an estimator."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal, Self, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.models.communities.model import Communities
from streaming_moments.models.communities.moves import likelier_labels
from streaming_moments.models.refinement import ROUNDS
from streaming_moments.models.rows import InMemory
from streaming_moments.quality.prediction import completion_perplexity
from streaming_moments.sklearn.estimator import MomentTransformer, RandomSeed
from streaming_moments.sklearn.sparse_input import SparseInput, held_values, holds_texts
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch, documents_repeated
from streaming_moments.statistics.counts.statistics import MomentStatistics

# Largest number of communities. If the fit chooses the number, the basis has room for this many.
_MOST = 32


class MomentCommunities(SparseInput, MomentTransformer):
    """Communities of a graph from its adjacency matrix; a node can be in several.

    `X` is an adjacency matrix, (nodes, n) array_like or sparse. It has a column for each node, and
    rows for all or some nodes. An entry is 1 if the nodes of its row and column are neighbours,
    else 0; the diagonal is 0. `X` can also be a networkx graph, whose nodes are in the order of
    `list(X)` and whose edge weights are ignored. `fit` warns if held-out neighbours show no
    communities.

    Parameters
    ----------
    n_components : int, "auto" or "predict"
        Number of communities k, at most 32. "auto" chooses the smallest number after which one
        more community hardly improves the held-out log-likelihood of pairs of neighbours.
        "predict" chooses the smallest number within the noise of the best log-likelihood.
    alpha0 : float
        Sum of the Dirichlet parameters of the memberships. With 0, each node has one community.
    refine : int
        Rounds of refinement, which raise the likelihood of the pairs of neighbours.
    random_state : int, RandomState or None
        Seed of the random directions of the basis.
    keep_statistics : bool
        Whether a pickle after `fit` includes `statistics_`, so that nodes can be added later; after
        `partial_fit` it always does.
    verbose : int
        1 prints a line for each step of a fit, with its seconds; 0 prints none.

    Attributes
    ----------
    components_ : (k, n) float64
        For each community, the distribution of the neighbours of its members; each row has sum 1.
    weights_ : (k,) float64
        Share of each community, decreasing.
    memberships_ : (nodes, k) float64
        Memberships of the fitted nodes; only after `fit`, as `partial_fit` and `+` do not have all
        rows. With alpha0 0, each node has one community: the most likely one after variational
        rounds of a blockmodel. The blockmodel corrects for degrees that differ by more than chance.
        The rounds split and merge communities where that makes the edges more likely.
    labels_ : (nodes,) int64
        Most likely community of each fitted node; only after `fit`.
    number_search_ : NumberSearch
        Held-out scores of the numbers of communities that were tried, if `n_components` was "auto"
        or "predict".
    statistics_ : MomentStatistics
        Statistics of all nodes.
    model_ : Communities
        The fitted model.
    n_features_in_ : int
        Number of nodes n.

    Examples
    --------
    >>> from streaming_moments.synthetic.graphs import community_graph, membership_error
    >>> graph = community_graph(200, communities=2, inside=0.5, outside=0.05, alpha0=0.0)
    >>> found = MomentCommunities(2, alpha0=0.0).fit(graph.batch.to_csr())
    >>> membership_error(found.memberships_, graph.memberships) < 0.1
    True
    """

    _begun = ("_basis",)
    _seen = "nodes"

    def __init__(
        self,
        n_components: int | Literal["auto", "predict"] = 2,
        *,
        alpha0: float = 0.5,
        refine: int = ROUNDS,
        random_state: RandomSeed = 0,
        keep_statistics: bool = False,
        verbose: int | bool = 0,
    ) -> None:
        self.n_components = n_components
        self.alpha0 = alpha0
        self.refine = refine
        self.random_state = random_state
        self.keep_statistics = keep_statistics
        self.verbose = verbose

    @property
    def labels_(self) -> NDArray[np.int64]:
        """Most likely community of each fitted node, (nodes,); only after `fit`."""
        check_is_fitted(self, "memberships_")
        return np.asarray(self.memberships_.argmax(axis=1), dtype=np.int64)

    def fit_predict(self, X: Any, y: object = None) -> NDArray[np.int64]:
        """Fit the model to these nodes and return their `labels_`."""
        return self.fit(X).labels_

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Infer the communities of nodes from their rows of the adjacency matrix.

        Return (nodes, k) memberships; those of a node have sum 1.
        """
        records = self._read(X)
        return self.model_.transform(records)

    def score(self, X: Any, y: object = None) -> float:
        """Return the mean log-likelihood of a held-out neighbour; higher is better.

        Half of the neighbours of each node are held out and predicted from the other half.

        Raises
        ------
        InvalidInput
            No node has two neighbours.
        """
        batch = self._read(X)
        perplexity = completion_perplexity(self.model_, batch, seed=self._seed)
        return -float(np.log(perplexity))

    def _begin(self, records: CountBatch) -> None:
        if not records.words.size:
            raise InvalidInput("the graph has no edges; give a matrix with 1 for each edge")
        if not (records.lengths > 1).any():
            raise InvalidInput("no node has two neighbours; add edges")
        own = np.repeat(np.arange(records.documents), np.diff(records.indptr))
        if records.documents == records.n_words and (own == records.words).any():
            node = int(own[own == records.words][0])
            raise InvalidInput(f"node {node} is its own neighbour; set the diagonal to 0")
        _require_symmetric(records)
        k = self.n_components
        if not isinstance(k, str) and k > _MOST:
            raise InvalidInput(f"n_components is {k}; give at most {_MOST}")
        if records.documents > records.n_words:
            raise InvalidInput(
                f"X has {records.documents} rows and {records.n_words} columns; an adjacency "
                "matrix has a column for each node, so give at most as many rows as columns"
            )
        if not isinstance(k, str) and k > records.n_words:
            raise InvalidInput(
                f"n_components is {k}, but the graph has {records.n_words} nodes; ask for fewer"
            )
        most = min(_MOST, records.n_words) if isinstance(k, str) else k
        self._repeated = documents_repeated(records)
        self._basis = Basis.from_pilot(records, most, self._seed)

    def _counted(self, records: CountBatch, first: int) -> MomentStatistics:
        halves = self._halves(first, records.documents)
        return MomentStatistics.of(replace(records, halves=halves), self._basis)

    def _finish(self, records: CountBatch) -> None:
        self._warn_of_chance()
        found = self.model_.transform(records)
        if not self.alpha0 and records.documents == records.n_words:
            labels = likelier_labels(records.to_csr(), found.argmax(axis=1), self.model_.n_topics)
            known = records.lengths > 0
            found[known] = np.eye(self.model_.n_topics)[labels[known]]
        self.memberships_ = found

    def _warn_of_chance(self) -> None:
        """Warn if the model predicts held-out neighbours worse than one community does."""
        k, found = self.model_.n_topics, self.model_.held_out
        if k == 1 or found is None:
            return
        told: dict[str, Any] = {"alpha0": self.alpha0, "refine": self.refine}
        options = Communities.Options(topics=1, **told)
        one = Communities.fit(InMemory((self.statistics_,)), options).held_out
        gain, noise = (0.0, 0.0) if one is None else found.gain(one)
        if gain < -noise:
            warnings.warn(
                f"{k} communities predict held-out neighbours worse than one community does, so "
                'they are mostly chance; ask for fewer, give n_components="auto", or add edges',
                stacklevel=4,
            )

    def _fitted(self, statistics: MomentStatistics) -> Self:
        told: dict[str, Any] = {"alpha0": self.alpha0, "refine": self.refine}
        options = Communities.Options(topics=self._number(statistics, Communities, **told), **told)
        try:
            self.model_ = Communities.fit(InMemory((statistics,)), options)
        except NotIdentifiable as error:
            if options.topics == 1:
                raise  # the message below would ask for fewer than one community
            raise NotIdentifiable(
                f"the neighbours of the nodes do not separate {options.topics} communities; "
                "ask for fewer, or add edges"
            ) from error
        self.statistics_ = statistics
        self.components_ = np.ascontiguousarray(self.model_.topics.T)
        self.weights_ = self.model_.weights.copy()
        if hasattr(self, "memberships_"):
            del self.memberships_
        return self

    def _records(self, X: Any, first: bool = False) -> CountBatch:
        X = _adjacency(X) if hasattr(X, "adjacency") and hasattr(X, "nodes") else X
        if holds_texts(X):
            raise InvalidInput(
                "X holds names of nodes, but an adjacency matrix holds 0 and 1; convert a list of "
                "edges by networkx.from_edgelist(X), or a frame by "
                "networkx.from_pandas_edgelist(X, *X.columns[:2])"
            )
        checked = self._matrix(X, first, ensure_min_samples=2 if first else 1)
        if not np.isin(held_values(checked), (0, 1)).all():
            what = "give (X > 0), as weights of edges are not counted"
            if checked.shape[1] == 2:
                what = "if X is a list of edges, give networkx.from_edgelist(X)"
            raise InvalidInput(f"an adjacency matrix holds only 0 and 1; {what}")
        return CountBatch.from_csr(checked)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # skip checks of scikit-learn whose random matrices are not graphs
        tags.input_tags.two_d_array = False
        return cast("Tags", tags)


def _require_symmetric(records: CountBatch) -> None:
    """Raise InvalidInput if a matrix has the rows of all nodes, but is not symmetric."""
    if records.documents == records.n_words:
        adjacency = records.to_csr()
        alone = sp.coo_array(adjacency - adjacency.T)
        if alone.nnz:
            one, other = next(
                pair for *pair, value in zip(*alone.coords, alone.data, strict=True) if value > 0
            )
            raise InvalidInput(
                f"node {other} is a neighbour of node {one}, but not the reverse; give a symmetric "
                "matrix, such as (X + X.T > 0)"
            )


def _adjacency(graph: Any) -> sp.csr_array:
    """Return the (nodes, nodes) adjacency matrix of a networkx graph."""
    place = {node: number for number, node in enumerate(graph.nodes)}
    lists = [sorted(place[other] for other in near) for _, near in graph.adjacency()]
    indptr = np.cumsum([0, *map(len, lists)])
    indices = np.array([one for near in lists for one in near], dtype=np.int64)
    ones = np.ones(indices.size, dtype=np.int64)
    return sp.csr_array((ones, indices, indptr), shape=(len(place), len(place)))
