"""HiddenMarkovModel: states behind sequences of symbols, from their windows of three."""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Column, Columns
from streaming_moments.deprecation import renamed_fields
from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import Description, FitOptions, option, require_joint
from streaming_moments.models.chains.discrete import DiscreteEmission
from streaming_moments.models.chains.fit import fitted_fields
from streaming_moments.models.chains.hidden_chain import HiddenChain
from streaming_moments.models.chains.transitions import Operators
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.refinement import require_rounds
from streaming_moments.models.rows import Rows
from streaming_moments.models.stored import StoredModel, stored_as
from streaming_moments.models.three_view.columns import said_of_turned
from streaming_moments.models.three_view.triple_model import TripleModel
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.sequences.windows import SymbolBatch

# Windows for each symbol below which operators are mostly noise (measured: good at 2,000, worse
# than unigrams at 30).
_RARE = 1000
_UNIGRAMS = 1e-3  # of a prediction by operators


@dataclass(frozen=True, kw_only=True)
class MarkovOptions(FitOptions):
    """What a fit of sequences is told."""

    refine: int = option(
        "Rounds by the windows, of millions fewer; of a sketched alphabet none.",
        200,
        require_rounds,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_joint(self.method, "three views")


@renamed_fields("0.3.0", "0.4.0", moves="transition")
@dataclass(frozen=True, eq=False, repr=False)
class HiddenMarkovModel(TripleModel):
    """States, their symbols, and how they follow one another.

    States are ordered by falling share. Nothing is assumed to be stationary: all windows of all
    places are used.

    Parameters
    ----------
    emission : (n, k) float64
        Columns on the simplex: symbols of each state.
    transition : (k, k) float64
        Columns on the simplex: a column for each state gone from.
    start : (k,) float64
        Shares of the states with which sequences begin.
    weights : (k,) float64
        Shares of the states over all places.
    spectrum : (k,) float64
        Singular values of the pair of outer symbols.
    symbol_shares : (n,) float64
        Share of each symbol.
    observable : Operators, optional
        Observable operators, where they are not too many numbers.
    windows : int
        Windows of three symbols it was fitted on.
    short : int
        Sequences of fewer than three symbols, which tell how sequences begin and nothing else.
    turned : int
        States that came out negative, which the statistics hardly hold.
    beginnings : int
        First symbols that tell where sequences begin; where these are too few `start` is `weights`.
    untold : int
        States of which nothing tells what follows: all states alike.
    refined : int
        Rounds of refinement by the table of windows.
    window_score : float
        Nats a window, by the refinement; NaN without.
    held_out : HeldOut, optional
        How likely the windows of each half are by the model of the other one, where that was asked.
    bars, word_bars : (k,) and (n, k) float64, optional
        L1 error to be expected of each column of `emission` before refinement, and standard errors
        of its entries, where the statistics keep halves of the sequences.
    documents : int
        Sequences it was fitted on.
    since, until, half_life
        As of any model.

    Examples
    --------
    >>> model = HiddenMarkovModel(
    ...     np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([[0.9, 0.2], [0.1, 0.8]]),
    ...     np.array([0.5, 0.5]), np.array([0.6, 0.4]))
    >>> model.decode(SymbolBatch.of([[0, 0, 1, 1]]))[1]
    array([0, 0, 1, 1], dtype=int32)
    """

    name: ClassVar[str] = "hmm"
    kind: ClassVar[str] = SequencesFoundation.kind
    Options: ClassVar[type[FitOptions]] = MarkovOptions
    nulls: ClassVar[tuple[str, ...]] = (*StoredModel.nulls, "window_score")

    emission: NDArray[np.float64] = field(metadata=stored_as(states=(1,)))
    transition: NDArray[np.float64] = field(metadata=stored_as(name="moves", states=(0, 1)))
    start: NDArray[np.float64] = field(metadata=stored_as(states=(0,)))
    weights: NDArray[np.float64] = field(metadata=stored_as(states=(0,)))
    _: KW_ONLY
    spectrum: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    symbol_shares: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    observable: Operators | None = field(
        default=None, metadata=stored_as(arrays=("operators", "first", "last"))
    )
    windows: int = 0
    short: int = 0
    turned: int = 0
    beginnings: int = 0
    untold: int = 0
    refined: int = 0
    window_score: float = field(default=float("nan"), metadata=stored_as(required=True))
    bars: NDArray[np.float64] | None = field(
        default=None, metadata=stored_as(states=(0,), together="bars")
    )
    word_bars: NDArray[np.float64] | None = field(
        default=None, metadata=stored_as(states=(1,), together="bars")
    )
    held_out: HeldOut | None = None

    @classmethod
    def _fitted(cls, rows: Rows, options: Any, halves: bool) -> Self:
        model = cls(**fitted_fields(rows, options, halves))
        return model.reordered(np.argsort(-model.weights.round(9), kind="stable"))

    @classmethod
    def fit_bytes(cls, foundation: Any, options: Any) -> int:
        """As of views, and the operators of all symbols."""
        return 8 * int((10 + 2 * options.topics) * foundation.rows * options.topics)

    @property
    def n_topics(self) -> int:
        """Number of states k."""
        return self.weights.size

    @property
    def tables(self) -> dict[str, NDArray[np.float64]]:
        """(n, k) symbols of the states."""
        return {"symbols": self.emission}

    @property
    def triple_views(self) -> tuple[tuple[NDArray[np.float64], ...], NDArray[np.float64], float]:
        """Columns of the middle, first and last symbol of a window, their weights, and 0."""
        joint = self.transition * self.weights
        middle = joint.sum(axis=1)
        before = joint.T / np.where(middle > 0, middle, 1)
        outer = self.emission @ before, self.emission @ self.transition
        return (self.emission, *outer), middle, 0.0

    @property
    def chain(self) -> HiddenChain[SymbolBatch]:
        """The chain by which sequences of symbols are read."""
        emission = DiscreteEmission(self.emission)
        return HiddenChain(emission, self.transition, self.start, self.weights)

    @property
    def rare(self) -> bool:
        """Whether symbols are so rare that operators are mostly noise."""
        return self.windows < _RARE * len(self.emission)

    def transform(
        self, batch: SymbolBatch, method: str = "fixed-point", seed: int | None = None
    ) -> NDArray[np.float64]:
        """(chunks, k) mean posterior of the states over the symbols of each chunk."""
        posterior = self.posterior(batch)
        sums = np.zeros((batch.documents, self.n_topics))
        np.add.at(sums, np.repeat(np.arange(batch.documents), np.diff(batch.offsets)), posterior)
        return sums / np.maximum(np.diff(batch.offsets), 1)[:, None]

    def read(self, batch: SymbolBatch, method: str = "viterbi", seed: int | None = None) -> Columns:
        """Log probability of each chunk, states of its own symbols and how sure each of them is.

        States are the likeliest together by "viterbi", each by itself by "posterior".
        """
        logs, posterior = self.chain.read(batch)
        if method == "viterbi":
            states = self.decode(batch)[1]
        else:
            states = posterior.argmax(axis=1).astype(np.int32)
        ends = np.concatenate([[0], np.cumsum(batch.lengths)])
        sure = posterior[np.arange(states.size), states]
        return Columns.of(
            log_likelihood=logs,
            states=Column(states[batch.own], offsets=ends),
            probabilities=Column(sure[batch.own], offsets=ends),
        )

    def posterior(self, batch: SymbolBatch) -> NDArray[np.float64]:
        """(symbols, k) probability of each state at each place, given the whole sequence."""
        return self.chain.posterior(batch)

    def log_likelihoods(self, batch: SymbolBatch) -> NDArray[np.float64]:
        """(chunks,) log probability of each sequence; a symbol outside the alphabet is not seen."""
        return self.chain.log_likelihoods(batch)

    def perplexity(self, batch: SymbolBatch) -> float:
        """Of sequences, a symbol; lower is better.

        Raises
        ------
        InvalidInput
            No symbol of the alphabet.
        """
        known = int((batch.symbols >= 0).sum())
        if not known:
            raise InvalidInput("none of the symbols is of the alphabet; give sequences of others")
        return float(np.exp(-self.log_likelihoods(batch).sum() / known))

    def decode(self, batch: SymbolBatch) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Likeliest states of each sequence (Viterbi): log probabilities, and (symbols,) states."""
        return self.chain.decode(batch)

    def filtered(self, symbols: NDArray[np.int64]) -> tuple[NDArray[np.float64], int]:
        """(t + 1, n) distribution of each next symbol by the observable operators, and restarts.

        A symbol of -1 is one that was not seen: any it may have been. Predictions are clipped at 0,
        made to sum to 1, and mixed with a thousandth of the shares of the symbols. Where the state
        predicts nothing positive it begins anew, which is counted.

        Raises
        ------
        InvalidInput
            The model has no operators, as they would be too many numbers.
        ForeignStatistics
            A symbol outside the alphabet.
        """
        ops, operators, restarts = *self._operators(symbols), 0
        state = ops.first
        found = np.empty((len(symbols) + 1, len(self.emission)))
        ahead = np.einsum("a,xab->xb", ops.last, ops.symbols)
        for place in range(len(symbols) + 1):
            shares = np.clip(ahead @ state, 0, None)
            total = shares.sum()
            shares = shares / total if total > 0 else self.symbol_shares
            found[place] = (1 - _UNIGRAMS) * shares + _UNIGRAMS * self.symbol_shares
            if place == len(symbols):
                break
            moved = operators[symbols[place]] @ state
            norm = float(ops.last @ moved)
            restarts += norm <= 0
            state = moved / norm if norm > 0 else ops.first
        return found, restarts

    def log_probability(self, symbols: NDArray[np.int64]) -> float:
        """Of one sequence by the observable operators, minus infinity where they give none.

        Symbols and errors as of `filtered`.
        """
        ops, operators = self._operators(symbols)
        state, total = ops.first, 0.0
        for symbol in symbols:
            state = operators[symbol] @ state
            norm = float(ops.last @ state)
            if norm <= 0:
                return -np.inf
            state, total = state / norm, total + np.log(norm)
        return float(total)

    def described(self) -> Description:
        """Shares of the states, how they begin and stay, error bars; what to beware of."""
        columns = {"weight": self.weights, "start": self.start, "stays": np.diag(self.transition)}
        if self.bars is not None:
            columns["error bar"] = self.bars
        names = (
            "windows",
            "short",
            "turned",
            "beginnings",
            "untold",
            "refined",
            "rare",
            "window_score",
        )
        facts: dict[str, Any] = {name: getattr(self, name) for name in names}
        if self.held_out is not None:
            facts["held_out"] = asdict(self.held_out) | {"mean": self.held_out.mean}
        facts |= {"moves": self.transition.T.tolist(), "operators": self.observable is not None}
        said = [f"{self.windows:,} windows of three symbols"]
        if self.refined:
            said.append(f"refined {self.refined} rounds by them")
        if self.held_out is not None:
            said.append(
                f"a window held out had log likelihood {self.held_out.mean:.4f}, perplexity "
                f"{window_perplexity(self.held_out):.4g} a symbol"
            )
        if self.short:
            said.append(f"{self.short:,} sequences have fewer than three symbols")
        if self.start is self.weights or np.array_equal(self.start, self.weights):
            said.append("too few sequences to tell how they begin: as the states are everywhere")
        if self.untold:
            said.append(f"of {self.untold} states nothing tells what follows: all alike")
        if self.turned and not self.refined:
            said.append(said_of_turned(self.turned))
        if self.rare:
            said.append("symbols are rare: read by the parameters, operators are mostly noise")
        return Description(facts, columns, "; ".join(said))

    def _operators(self, symbols: NDArray[Any]) -> tuple[Operators, NDArray[np.float64]]:
        """Operators, and by symbol those of all; the last may be of a symbol that was not seen."""
        if self.observable is None:
            raise InvalidInput(
                f"the model keeps no observable operators: {len(self.emission):,} symbols and "
                f"{self.n_topics} states make too many numbers; read by its parameters"
            )
        given, each = np.asarray(symbols), self.observable.symbols
        DiscreteEmission(self.emission).require(given)
        if given.size and given.min() < 0:
            each = np.concatenate([each, each.sum(axis=0, keepdims=True)])
        return self.observable, each


def window_perplexity(held_out: HeldOut) -> float:
    """Of a symbol, from the likelihood of windows of three.

    Examples
    --------
    >>> round(window_perplexity(HeldOut(-3.0, -3.0)), 4)
    2.7183
    """
    return float(np.exp(-held_out.mean / 3))
