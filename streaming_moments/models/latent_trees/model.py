"""LatentTree: tree of hidden variables that explains the columns of a categorical table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Column, Columns, DataFrame
from streaming_moments.errors import ForeignStatistics, InvalidInput, NotIdentifiable
from streaming_moments.models.base import (
    Arrays,
    Attributes,
    Description,
    FitOptions,
    option,
    takes_n_topics,
)
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.latent_trees import drawing
from streaming_moments.models.latent_trees.bars import TreeBars, score_bars, table_bars
from streaming_moments.models.latent_trees.chow_liu import chow_liu
from streaming_moments.models.latent_trees.directed import DirectedTree
from streaming_moments.models.latent_trees.pair_tables import PairTables
from streaming_moments.models.latent_trees.parameters import Triple, views_of
from streaming_moments.models.latent_trees.shapes import (
    AUTO,
    SHAPES,
    Measured,
    fitted_shapes,
    taken_of,
)
from streaming_moments.models.latent_trees.structure import (
    Structure,
    contracted,
    neighbour_joining,
)
from streaming_moments.models.latent_trees.sweeps import (
    even_pairs,
    even_rows,
    pair_rows,
    triple_rows,
)
from streaming_moments.models.latent_trees.triple_rounds import OWN_ROWS
from streaming_moments.models.latent_trees.triples import (
    halves_of,
    nearest_triples,
    ring_triples,
)
from streaming_moments.models.numbers.number_search import Trial
from streaming_moments.models.provenance import Polishing
from streaming_moments.models.rows import Rows
from streaming_moments.models.starts import MOMENTS, PILOT
from streaming_moments.models.stored import StoredModel, stored_as
from streaming_moments.printing.short_repr import shown
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.tables.columns import FEWEST_COLUMNS, TableColumns
from streaming_moments.statistics.row_block import interleaved

_CONTRACT = 0.15
_SMOOTHING = 1e-3
_LEAST_STATES = 2
_SHAPE_NAMES = {
    "latent_tree": "latent tree",
    "mixed_tree": "tree of hidden nodes and columns",
    "chow_liu": "Chow-Liu's tree",
    "latent_classes": "latent classes",
}


def _require_contract(shortest: float) -> None:
    if not 0 <= shortest < np.inf:
        raise InvalidInput(f"contract is {shortest}; it must be at least 0")


def _require_smoothing(share: float) -> None:
    if not 0 < share < 1:
        raise InvalidInput(f"smoothing is {share}; it must be between 0 and 1")


@takes_n_topics
@dataclass(frozen=True, kw_only=True)
class LatentTreeOptions(FitOptions):
    """Options of a fit of a latent tree.

    `topics` is the number of states of each hidden node. A node gets fewer states if the columns
    around it do not separate that many.
    """

    contract: float = option(
        "Merge hidden nodes closer than this distance.", _CONTRACT, _require_contract
    )
    smoothing: float = option(
        "Share of a column's overall distribution that is mixed into its distribution for "
        "each state.",
        _SMOOTHING,
        _require_smoothing,
    )

    shape: str = option(
        "Inner nodes of the tree: all hidden (latent_tree), some of them columns (mixed_tree), "
        "all columns (chow_liu), or one hidden node (latent_classes); auto: the shape that "
        "predicts held-out columns best.",
        AUTO,
        choices=(AUTO, *SHAPES),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shape not in (AUTO, *SHAPES):
            raise InvalidInput(f"shape is {shown(self.shape)}; give {', '.join((AUTO, *SHAPES))}")
        if self.method != "joint":
            raise InvalidInput(
                f'latent trees are fitted by "joint" only, not by "{self.method}"; leave the '
                "method out"
            )

    @property
    def summary(self) -> str:
        """Summary of the fit for logs."""
        return f"hidden nodes of {self.topics} states"

    @property
    def label(self) -> str:
        """Label of these options, which becomes part of the name of a model."""
        how = "" if self.contract == _CONTRACT else f"-c{self.contract:g}"
        return f"k{self.topics}{how}" + ("" if self.shape == AUTO else f"-{self.shape}")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LatentTree(StoredModel):
    """Tree that joins the columns of a table, mostly by inner nodes with hidden states.

    Given the state of a node, the parts of the tree beyond its different edges are independent. A
    fit compares several shapes of trees and keeps the one that predicts best.

    Parameters
    ----------
    table : TableColumns
        The V columns with their categories.
    structure : Structure
        The tree with the length of its edges.
    order : tuple of int
        For each node of `tree`, its number in `structure`.
    tree, dependence : DirectedTree
        The latent tree with its probability tables, and the tree that Chow and Liu's method fits to
        the same pairs of columns.
    scores : mapping
        Mean log-likelihood of a pair of columns in nats: with each shape that was fitted, with
        Chow-Liu's tree, with independent columns, and with the counted pairs themselves, which is
        the upper bound.
    states : int
        Largest number of states k of a hidden node.
    shape : str
        "latent_tree": all inner nodes are hidden; "mixed_tree": some inner nodes are columns;
        "chow_liu": all are columns; "latent_classes": one hidden node is between all columns.
    shape_scores : mapping
        Held-out score of each shape: mean log-probability in nats of a column given its two most
        informative columns. The tree was fitted to the other half of the rows.
    held_out : HeldOut, optional
        Score of the chosen shape; None if the statistics have no halves.
    vocabulary, basis : str
        Fingerprints of the vocabulary and the basis.
    bars : TreeBars, optional
        Error bars of tables and scores, if the statistics have halves of the rows and each half
        identifies the tree.
    start : str
        "moments", or "pilot" if passes started from latent classes that were fitted to a random
        sample of the rows, the pilot.
    polishing : Polishing, optional
        How passes polished the tree, if they did; bars and scores are those before the passes.
    documents : int
        Number of rows in the fit.
    since, until, half_life
        As for any model.

    Examples
    --------
    >>> from streaming_moments import Basis, MomentStatistics
    >>> from streaming_moments.models.rows import InMemory
    >>> from streaming_moments.synthetic.tables import latent_tree_table
    >>> planted = latent_tree_table(2000, n_columns=4, n_states=2, n_categories=2, seed=1)
    >>> basis = Basis.of_table(planted.table)
    >>> statistics = MomentStatistics.of(planted.table.batch(planted.codes), basis)
    >>> model = LatentTree.fit(InMemory((statistics,)), LatentTree.Options(topics=2))
    >>> model.tree.log_probabilities(np.array([[0, 1, -1, 0]])).shape
    (1,)
    """

    name: ClassVar[str] = "latent_tree"
    numbered: ClassVar[str] = "states"
    record: ClassVar[str] = "row"
    kind: ClassVar[str] = "counts"
    Options: ClassVar[type[FitOptions]] = LatentTreeOptions
    compares_halves: ClassVar[bool] = True
    holds_out: ClassVar[str] = "triples"
    nulls: ClassVar[tuple[str, ...]] = ()

    table: TableColumns = field(metadata=stored_as(own=True))
    structure: Structure = field(metadata=stored_as(own=True))
    order: tuple[int, ...]
    tree: DirectedTree = field(metadata=stored_as(own=True))
    dependence: DirectedTree = field(metadata=stored_as(own=True))
    scores: Mapping[str, float]
    states: int
    vocabulary: str = ""
    basis: str = ""
    bars: TreeBars | None = field(default=None, metadata=stored_as(own=True))
    shape: str = "latent_tree"
    shape_scores: Mapping[str, float] = field(default_factory=dict)
    held_out: HeldOut | None = None
    start: str = MOMENTS
    polishing: Polishing | None = None

    @classmethod
    def fit(cls, rows: Rows, options: Any) -> Self:
        """Fit the tree to statistics.

        Parameters
        ----------
        rows : Rows
            Statistics of a table of categorical columns.
        options : LatentTreeOptions
            Options of the fit.

        Raises
        ------
        InvalidInput
            The statistics are of documents, not of a table.
        NotIdentifiable
            There are fewer than three columns, two columns never occur in one row, or no tree of
            the shape asked for can be fitted; the message names the columns.
        """
        table = rows.basis.table
        if table is None:
            raise InvalidInput(
                "a latent tree needs the categorical columns of a table",
                "count them with {create.categories}",
            )
        if table.number < FEWEST_COLUMNS:
            raise NotIdentifiable(
                f"the table has {table.number} columns, but hidden states need at least "
                f"{FEWEST_COLUMNS}; give more columns"
            )
        if options.topics < _LEAST_STATES:
            raise InvalidInput("a single state explains nothing; ask for 2 states or more")
        pairs = rows.each("reading row blocks", pair_rows, table.n_words)
        planned = rows.once("structure", _structured, pairs, table, options)
        tables, *structures = rows.value(planned)
        read = ring_triples(table, options.seed), nearest_triples(tables)
        around = [views_of(structure).values() for structure in structures]
        wanted = sorted(
            {*read[0], *read[1], *(view for own in around for by in own for view in by)}
        )
        triples = rows.each("triples of columns", triple_rows, table, tuple(wanted))
        even = None
        if rows.halves:
            halves = rows.prepared("pairs of halves", even_pairs, halves=True)
            even = halves.each("pairs of halves", even_rows, table.n_words)
        made = rows.once("parameters", cls._finished, planned, triples, wanted, read, even, options)
        found: Self = rows.value(made)
        return found._fitted_on(rows)

    @classmethod
    def fit_bytes(cls, foundation: Any, options: Any) -> int:
        """Return the bytes that a fit of topics by moments needs; a fit of trees needs fewer."""
        return 8 * 6 * int(foundation.rows * options.topics)

    @classmethod
    def _finished(
        cls,
        planned: tuple[PairTables, Structure, Structure],
        parts: Sequence[Mapping[Triple, NDArray[np.float64]]],
        wanted: Sequence[Triple],
        read: tuple[Sequence[Triple], Sequence[Triple]],
        even: Sequence[NDArray[np.float64]] | None,
        options: Any,
    ) -> Self:
        tables, latent, mixed = planned
        counts: dict[Triple, NDArray[np.float64]] = {}
        for views in wanted:
            counts[views] = np.zeros([tables.table.sizes[view] for view in views])
            for part in parts:
                places, rows = part[views]
                counts[views][places] = rows
        both: tuple[PairTables, ...] = ()
        if even is not None:
            half = interleaved(even)
            both = replace(tables, counts=half), replace(tables, counts=tables.counts - half)
        drawn = halves_of(counts, both, options.seed)
        measured = Measured(
            tables,
            counts,
            chow_liu(tables, options.smoothing, OWN_ROWS),
            latent,
            mixed,
            *read,
            tuple(zip(both, drawn, strict=False)),
        )
        found = fitted_shapes(measured, options)
        scored = {name: one.held_out(measured) for name, one in found.items()}
        held_out = {name: one for name, one in scored.items() if one and np.isfinite(one.mean)}
        taken = taken_of(held_out, found)
        one = found[taken]
        own = [tables.marginal(column) for column in range(tables.table.number)]
        joints = {name: shaped.tree.joints() for name, shaped in found.items()} | {
            "chow_liu": measured.dependence.joints(),
            "independent": [[np.outer(x, y) for y in own] for x in own],
        }
        scores = {name: tables.mean_log(q) for name, q in joints.items()}
        scores["pairs"] = tables.mean_log(
            [
                [tables.joint(x, y) if x != y else np.diag(own[x]) for y in range(len(own))]
                for x in range(len(own))
            ]
        )
        bars = None
        errors = table_bars(one.alike, one.tree)
        if errors is not None:
            every = [{name: half.mean_log(q) for name, q in joints.items()} for half in both]
            bars = TreeBars(errors, score_bars((every[0], every[1]), taken))
        return cls(
            table=tables.table,
            structure=one.structure,
            order=one.order,
            tree=one.tree,
            dependence=measured.dependence,
            scores=scores,
            states=options.topics,
            bars=bars,
            shape=taken,
            shape_scores={name: score.mean for name, score in held_out.items()},
            held_out=held_out.get(taken),
        )

    @classmethod
    def trial(cls, rows: Rows, options: Any) -> Trial | None:
        """Fit a tree, and score it by how well it predicts columns of held-out rows.

        Raises the same errors as `fit`, and NotIdentifiable if the options ask for a single state.
        """
        if options.topics < _LEAST_STATES:
            raise NotIdentifiable("a single state explains nothing; ask for 2 states or more")
        return super().trial(rows, options)

    def _fitted_on(self, rows: Rows) -> Self:
        basis: Basis = rows.basis
        return replace(
            self,
            documents=rows.lengths.whole.n_documents,
            vocabulary=basis.vocabulary,
            basis=basis.fingerprint,
        )

    @property
    def n_columns(self) -> int:
        """Number of columns V."""
        return self.table.number

    @property
    def flat(self) -> NDArray[np.float64]:
        """Parents, columns and tables of all nodes, one after another in one array."""
        nodes = np.array([self.tree.parents, self.tree.columns], dtype=np.float64)
        return np.concatenate([nodes.ravel(), *(table.ravel() for table in self.tree.tables)])

    def codes(self, batch: CountBatch) -> NDArray[np.int64]:
        """Return the (rows, V) indices of the categories in a batch; -1 for a missing value.

        Raises
        ------
        ForeignStatistics
            The batch has another vocabulary.
        """
        if batch.vocabulary != self.vocabulary:
            raise ForeignStatistics(
                "the rows have other columns than the model; read them with the columns of the "
                "model"
            )
        return self.table.codes(batch)

    def read(self, batch: CountBatch, method: str = "", seed: int | None = None) -> Columns:
        """Fill in the missing values of each row of a batch.

        Returns the completed rows, the probabilities of their values, and log-likelihoods of the
        rows.
        """
        codes = self.codes(batch)
        filled, sure = self.tree.completed(codes)
        values = zip(self.table.names, filled.T, self.table.categories, strict=True)
        return Columns.of(
            completed=Columns({name: Column(own, texts=known) for name, own, known in values}),
            missing=(codes < 0).sum(axis=1).astype(np.int32),
            probabilities=sure,
            log_likelihood=self.tree.log_probabilities(codes),
            chow_liu_log_likelihood=self.dependence.log_probabilities(codes),
        )

    def sample(self, number: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw (number, V) categories from the tree, and (number, H) states of its hidden nodes."""
        states = self.tree.sample(number, np.random.default_rng(seed))
        hidden = [place for place, column in enumerate(self.tree.columns) if column < 0]
        return states[:, self.tree.node_of], states[:, hidden]

    @property
    def behind(self) -> float:
        """Nats per pair of columns by which Chow-Liu's tree predicts better; negative if worse."""
        return self.scores["chow_liu"] - self.scores[self.shape]

    def summary(self) -> dict[str, Any]:
        """Return the largest number of states of a hidden node, and the scores of the tree."""
        return {
            "model": self.name,
            "states": self.states,
            "held_out": None if self.held_out is None else self.held_out.mean,
            "scores": dict(self.scores),
        }

    @property
    def shown_columns(self) -> Columns:
        """Columns of the table in notebooks: one row for each node, and parents come first."""
        nodes = drawing.as_json(self)
        found = {name: [one[name] for one in nodes] for name in ("node", "parent", "length")}
        found["states"] = [len(one["states"]) for one in nodes]
        return Columns({name: Column.of_values(values) for name, values in found.items()})

    @property
    def per_state(self) -> Columns:
        """Columns of the frame or table of a model, which has one row for each node of the tree."""
        return self.shown_columns

    def to_frame(self) -> DataFrame:
        """Return the columns of `to_table` as a pandas frame, with one row for each node."""
        return self.per_state.to_frame()

    def described(self) -> Description:
        """Describe the tree for reports: scores beside Chow-Liu's, nodes as JSON, and a drawing."""
        facts = {
            "states": self.states,
            "columns": list(self.table.names),
            "hidden": len(self.structure.hidden),
            "pair_log_likelihood": dict(self.scores),
            "nodes": drawing.as_json(self),
            "shape": self.shape,
        }
        scores, bars = self.scores, self.bars
        told = "" if bars is None else f" (error {bars.scores[self.shape]:.1g})"
        sentence = (
            f"{_SHAPE_NAMES[self.shape]}: log-likelihood of a pair of columns "
            f"{scores[self.shape]:.4f}{told} nats; with Chow-Liu's tree "
            f"{scores['chow_liu']:.4f}, with independent columns {scores['independent']:.4f}, "
            f"upper bound {scores['pairs']:.4f}"
        )
        if bars is not None:
            facts["pair_log_likelihood_error"] = dict(bars.scores)
            errors = np.concatenate([table.ravel() for table in bars.tables])
            facts["mean_error"] = float(errors.mean())
            sentence += f"; probabilities of its tables err by {errors.mean():.2g} on average"
        if self.shape_scores:
            facts["held_out"] = dict(self.shape_scores)
            ranked = sorted(self.shape_scores.items(), key=lambda one: -one[1])
            shown = ", ".join(f"{_SHAPE_NAMES[name]} {score:.4f}" for name, score in ranked)
            sentence += f"; held-out log-likelihood of a column given two others: {shown}"
        cautions = []
        if self.behind > 0 and self.shape == "latent_tree":
            cautions.append(
                f"Chow-Liu's tree without hidden states is {self.behind:.2g} nats better: a "
                "latent tree is the wrong model of these columns, or it has too few states"
            )
            sentence += f"; {cautions[0]}"
        if self.start == PILOT:
            facts["start"] = self.start
            sentence += (
                "; started from latent classes of a pilot of the rows, which makes the rows more "
                "likely"
            )
        if self.polishing is not None:
            facts["polishing"] = asdict(self.polishing)
            sentence += f"; {self.polishing.sentence}; scores are of the fit before that"
        picture = drawing.as_text(self)
        return Description(facts, sentence=sentence, picture=picture, cautions=tuple(cautions))

    def parts(self) -> tuple[Arrays, Attributes]:
        """Return the stored arrays and attributes, from which `from_parts` restores the model."""
        stored, named = super().parts()
        arrays, attributes = {**stored}, {**named}
        attributes["table"] = self.table.to_json()
        attributes["edges"] = [list(edge) for edge in self.structure.edges]
        for name, one in (("tree", self.tree), ("dependence", self.dependence)):
            arrays[f"{name}_tables"] = np.concatenate([table.ravel() for table in one.tables])
            attributes[name] = [
                [parent, column, list(table.shape)]
                for parent, column, table in zip(one.parents, one.columns, one.tables, strict=True)
            ]
        if self.bars is not None:
            arrays["tree_bars"] = np.concatenate([table.ravel() for table in self.bars.tables])
            attributes["score_bars"] = dict(self.bars.scores)
        return arrays, attributes

    @classmethod
    def fields_given(cls, arrays: Arrays, attributes: Attributes) -> dict[str, Any]:
        """Return the fields of the model by name, from the stored arrays and attributes.

        Raises
        ------
        InvalidInput
            An array or attribute is missing, or they do not fit together.
        """
        left = dict(attributes)
        try:
            table = TableColumns.from_json(left.pop("table"))
            edges = tuple((int(x), int(y), float(length)) for x, y, length in left.pop("edges"))
            nodes, other = left.pop("tree"), left.pop("dependence")
            tree = _tree_of(arrays["tree_tables"], nodes)
            bars = None
            if "tree_bars" in arrays:
                errors = _tree_of(arrays["tree_bars"], nodes).tables
                told = {str(name): float(bar) for name, bar in left.pop("score_bars").items()}
                bars = TreeBars(errors, told)
            return {
                "table": table,
                "structure": Structure(table.number, edges),
                "tree": tree,
                "dependence": _tree_of(arrays["dependence_tables"], other),
                "bars": bars,
                **super().fields_given({}, left),
            }
        except (LookupError, TypeError, ValueError) as error:
            raise InvalidInput(f"the stored tree cannot be read ({error!r}); refit it") from error


def _tree_of(flat: NDArray[np.float64], nodes: Sequence[Any]) -> DirectedTree:
    shapes = [(int(rows), int(states)) for _, _, (rows, states) in nodes]
    ends = np.cumsum([rows * states for rows, states in shapes])
    parts = np.split(np.asarray(flat, dtype=np.float64), ends[:-1])
    return DirectedTree(
        tuple(int(parent) for parent, _, _ in nodes),
        tuple(int(column) for _, column, _ in nodes),
        tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)),
    )


def _structured(
    parts: Sequence[NDArray[np.float64]], table: TableColumns, options: Any
) -> tuple[PairTables, Structure, Structure]:
    joined = interleaved(parts)
    tables = PairTables(table, joined[:, :-1], joined[:, -1])
    found = neighbour_joining(tables.distances(options.topics))
    latent, mixed = (contracted(found, options.contract, columns) for columns in (False, True))
    return tables, latent, mixed
