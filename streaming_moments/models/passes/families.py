"""Families: table of the functions by which passes polish the models of each family."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from streaming_moments.errors import InvalidInput
from streaming_moments.models.bernoullis import acceleration
from streaming_moments.models.bernoullis import passes as set_passes
from streaming_moments.models.bernoullis import second_start as set_starts
from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.models.chains import passes as chain_passes
from streaming_moments.models.chains.hidden_markov import HiddenMarkovModel
from streaming_moments.models.communities import passes as edge_passes
from streaming_moments.models.communities.blockmodel import Blockmodel
from streaming_moments.models.communities.model import Communities
from streaming_moments.models.factors import passes as factor_passes
from streaming_moments.models.factors.independent_factors import IndependentFactors
from streaming_moments.models.latent_trees import passes as tree_passes
from streaming_moments.models.latent_trees import second_start as tree_starts
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.mixtures import passes as mixture_passes
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.mixtures.second_start import better_start
from streaming_moments.models.passes import polishing
from streaming_moments.models.passes.stopping import (
    AUTO,
    MOST_OF_CHAINS,
    MOST_PASSES,
    OF_CHAINS,
    OF_DOCUMENTS,
    OF_EM,
    settled,
)
from streaming_moments.models.poissons.poisson_mixture import PoissonMixture
from streaming_moments.models.registry import row_of
from streaming_moments.models.states import states_of
from streaming_moments.models.three_view import passes as view_passes
from streaming_moments.models.three_view.multi_view import MultiViewMixture
from streaming_moments.models.topics import TopicModel
from streaming_moments.statistics.counts.batch import concatenate
from streaming_moments.statistics.vectors.rows import join_vectors


@dataclass(frozen=True)
class SecondStart:
    """How a family of models chooses whether passes start from a fitted model or from a sample.

    better : `better(model, records, foundation, seed, settle)` returns the fitted `model`, or a
        model that starts from a part of the sample `records`: whichever makes the other part more
        likely. If `settle` is true and the sample has all records, it may first bring the fitted
        model nearer to its optimum
    joined : `joined(batches)` joins the records of several batches
    """

    better: Callable[[Any, Any, Any, int, bool], Any]
    joined: Callable[[Sequence[Any]], Any]

    def start(
        self, model: Any, records: Any, foundation: Any, passes: int | str, seed: int = 0
    ) -> Any:
        """Return the model from which passes start.

        It is `model` itself if no passes are asked for, or if there are not enough records.
        """
        none = passes != AUTO and (isinstance(passes, str) or passes < 1)
        if none or records is None or records.held < _FEWEST:
            return model
        return self.better(model, records, foundation, seed, passes == AUTO)


_FEWEST = 2  # a sample of records from which passes start needs at least this many

ACCELERATED = 2
"""The first passes, at most this many, may be accelerated. Later passes never lower the likelihood.
"""


def _as_it_is(given: Any) -> Any:
    return given


def _after(before: Any, after: Any) -> Any:
    return after


@dataclass(frozen=True)
class Passes:
    """How passes polish the models of a family.

    sums : class of the sums of a pass, an `expected_sums.ExpectedSums`
    reader : `reader(model, foundation).add(batch, sums)` adds the records of a batch to sums
    improved : `improved(model, sums, foundation, alpha)` is the model after a pass
    arrays : names of the arrays of a model that the sums depend on
    rules : constants of the reader; a pass does not reuse sums that were stored with other
        constants
    shape : `shape(model)` is the (rows, columns) of a table that takes as much memory as a pass
    require : `require(model, alpha)` raises InvalidInput if the model has no alpha to learn
    settles : "auto" stops if passes would change the model by at most this share of its error
        bars; see `settled`
    lasting : whether "auto" stops by the expected change of all later passes together, instead of
        the change of one pass
    of_rows : whether records are rows of numbers, which need the grid of a foundation
    states : `states(model)` returns the values whose change decides when "auto" stops
    cut : `cut(batches)` divides the records anew into batches for `reader`, which are the same
        wherever the boundaries of the given batches are
    begun : `begun(model)` returns the model with which the first pass after a fit reads records
    most : largest number of passes if "auto" decides
    accelerated : `accelerated(before, after)` returns the model that replaces `after` in the first
        `ACCELERATED` passes; its arguments are the models before and after a pass
    second : how to choose another start of the first passes; None if the family has no other
    """

    sums: type[Any]
    reader: Callable[[Any, Any], Any]
    improved: Callable[[Any, Any, Any, bool], Any]
    arrays: tuple[str, ...]
    rules: tuple[Any, ...]
    shape: Callable[[Any], tuple[int, int]]
    require: Callable[[Any, bool], None]
    settles: float
    lasting: bool = True
    of_rows: bool = False
    states: Callable[[Any], Any] = states_of
    cut: Callable[[Iterable[Any]], Iterable[Any]] = _as_it_is
    begun: Callable[[Any], Any] = _as_it_is
    most: int = MOST_PASSES
    accelerated: Callable[[Any, Any], Any] = _after
    second: SecondStart | None = None

    def start(self, model: Any) -> Any:
        """Return the model with which the first pass reads the records.

        It is `begun(model)` if no pass has polished the model before.
        """
        return model if model.polishing is not None else self.begun(model)

    def number(self, passes: int | str) -> int | str:
        """Return the largest number of passes: `most` if `passes` is "auto", otherwise `passes`."""
        return self.most if passes == AUTO else passes

    def after(self, number: int, before: Any, sums: Any, foundation: Any, alpha: bool) -> Any:
        """Return the model after pass `number`; the first pass has number 1."""
        found = self.improved(before, sums, foundation, alpha)
        return self.accelerated(before, found) if number <= ACCELERATED else found

    def settled(self, before: Any, after: Any, earlier: Any) -> bool:
        """Whether "auto" makes no more passes, because the models changed little.

        before, after : the models before and after this pass
        earlier : the model before the previous pass, if there was one
        """
        once = self.states(earlier) if self.lasting and earlier is not None else None
        return settled(self.states(before), self.states(after), self.settles, once)


def _refuse_alpha(model: Any, alpha: bool) -> None:
    if alpha:
        raise InvalidInput(f"model {model.name} has no alpha to learn; leave alpha out")


def _require_one(model: Any, alpha: bool) -> None:
    """Refuse alpha, and models that allow several states of a record, or communities of a node."""
    _refuse_alpha(model, alpha)
    if model.alpha0:
        raise InvalidInput(
            f"model {model.name} has alpha0 {model.alpha0:g}, which allows several "
            f"{model.numbered} at once; polish a model with alpha0 0"
        )


_OF_DOCUMENTS = Passes(
    polishing.ExpectedCounts,
    lambda model, foundation: polishing.Reader(model),
    lambda model, expected, foundation, alpha: polishing.improved(model, expected, alpha),
    ("topics", "weights", "raw_topics", "word_probabilities"),
    polishing.RULES,
    lambda model: (model.n_words, model.n_topics),
    polishing.require_alpha,
    OF_DOCUMENTS,
    lasting=False,
)
_OF_ROWS = Passes(
    mixture_passes.ExpectedRows,
    lambda model, foundation: mixture_passes.MixtureReader(model, foundation.grid),
    lambda model, expected, foundation, alpha: mixture_passes.improved(
        model, expected, foundation.grid
    ),
    ("means", "weights", "variances"),
    mixture_passes.RULES,
    mixture_passes.shape_of,
    _refuse_alpha,
    OF_EM,
    of_rows=True,
    second=SecondStart(
        lambda model, rows, foundation, seed, settle: better_start(
            model, rows.values, foundation.grid
        ),
        join_vectors,
    ),
)
_OF_FACTORS = Passes(
    factor_passes.FactorSums,
    lambda model, foundation: factor_passes.FactorReader(model, foundation.grid),
    lambda model, sums, foundation, alpha: factor_passes.improved(model, sums, foundation.grid),
    ("mixing", "unmixing", "mean", "noise"),
    factor_passes.RULES,
    factor_passes.shape_of,
    _refuse_alpha,
    OF_EM,
    of_rows=True,
    states=factor_passes.columns_of,
    lasting=False,
)
_OF_SETS = Passes(
    set_passes.ExpectedSets,
    lambda model, foundation: set_passes.SetReader(model),
    lambda model, expected, foundation, alpha: set_passes.improved(model, expected),
    ("probabilities", "weights"),
    (*set_passes.RULES, *acceleration.RULES, ACCELERATED),
    lambda model: (model.n_features, model.n_topics),
    _refuse_alpha,
    OF_EM,
    accelerated=acceleration.accelerated,
    second=SecondStart(
        lambda model, rows, foundation, seed, settle: set_starts.better_start(
            model, rows, seed, settle
        ),
        concatenate,
    ),
)
_OF_SEQUENCES = Passes(
    chain_passes.ExpectedStates,
    lambda model, foundation: chain_passes.ChainReader(model),
    lambda model, expected, foundation, alpha: chain_passes.improved(model, expected),
    ("emission", "transition", "start", "weights"),
    chain_passes.RULES,
    lambda model: model.emission.shape,
    _refuse_alpha,
    OF_CHAINS,
    cut=chain_passes.stretches,
    begun=chain_passes.begun,
    most=MOST_OF_CHAINS,
)
_OF_VIEWS = Passes(
    view_passes.ExpectedViews,
    lambda model, foundation: view_passes.ViewReader(model),
    lambda model, expected, foundation, alpha: view_passes.improved(model, expected),
    ("rows", "left", "right", "weights"),
    view_passes.RULES,
    lambda model: (sum(map(len, model.tables.values())), model.n_topics),
    _require_one,
    OF_EM,
    begun=view_passes.begun,
)
_OF_TABLES = Passes(
    tree_passes.ExpectedTables,
    lambda model, foundation: tree_passes.TreeReader(model),
    lambda model, expected, foundation, alpha: tree_passes.improved(model, expected),
    ("flat",),
    tree_passes.RULES,
    lambda model: (sum(table.size for table in model.tree.tables), 1),
    _refuse_alpha,
    OF_EM,
    states=tree_passes.conditionals,
    second=SecondStart(
        lambda model, rows, foundation, seed, settle: tree_starts.better_start(model, rows, seed),
        concatenate,
    ),
)
_OF_EDGES = Passes(
    edge_passes.ExpectedNeighbours,
    edge_passes.LabelReader.of,
    lambda model, expected, foundation, alpha: edge_passes.improved(model, expected),
    ("memberships", "mixing"),
    edge_passes.RULES,
    lambda model: model.memberships.shape,
    _require_one,
    OF_EM,
)
PASSES: Mapping[str, Passes] = MappingProxyType(
    {
        TopicModel.name: _OF_DOCUMENTS,
        PoissonMixture.name: _OF_DOCUMENTS,
        Communities.name: _OF_DOCUMENTS,
        GaussianMixture.name: _OF_ROWS,
        IndependentFactors.name: _OF_FACTORS,
        BernoulliMixture.name: _OF_SETS,
        HiddenMarkovModel.name: _OF_SEQUENCES,
        MultiViewMixture.name: _OF_VIEWS,
        LatentTree.name: _OF_TABLES,
        Blockmodel.name: _OF_EDGES,
    }
)


def passes_of(model: type[Any]) -> Passes:
    """Return how passes polish a class of models.

    Raises InvalidInput, with a remedy, if no passes can polish it.
    """
    return row_of(PASSES, model.name, "polish")
