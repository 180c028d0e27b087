"""HiddenMarkovModel: hidden states of sequences, fitted to windows of three symbols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Column, Columns
from streaming_moments.deprecation import renamed_fields
from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import (
    Description,
    FitOptions,
    option,
    require_joint,
    takes_n_topics,
)
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
from streaming_moments.plots import Axes, Figure, names_for, plot_chain
from streaming_moments.printing.plural import agreeing, of_number
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.sequences.windows import SymbolBatch

# With fewer windows than this for each symbol of the alphabet, observable operators are mostly
# noise. In measurements, they predict well with 2,000 windows for each symbol. With 30, they
# predict worse than the frequencies of the symbols alone.
_RARE = 1000
# this share of the symbol frequencies is mixed into predictions by observable operators
_UNIGRAMS = 1e-3


@takes_n_topics
@dataclass(frozen=True, kw_only=True)
class MarkovOptions(FitOptions):
    """Options of a fit to sequences of symbols."""

    refine: int = option(
        "Rounds of refinement by the windows of three symbols; fewer for millions of windows, "
        "none with a sketch.",
        200,
        require_rounds,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_joint(self.method, "three views")


@renamed_fields("0.3.0", "0.4.0", moves="transition")
@dataclass(frozen=True, eq=False, repr=False)
class HiddenMarkovModel(TripleModel):
    """Hidden Markov model: hidden states, distributions of their symbols, and transitions.

    States are ordered by decreasing share. The chain need not be stationary, because windows at all
    places of the sequences are used.

    Parameters
    ----------
    emission : (n, k) float64
        Distribution of the symbols of each state, in columns.
    transition : (k, k) float64
        Distribution of the next state, with a column for each current state.
    start : (k,) float64
        Distribution of the first state of a sequence.
    weights : (k,) float64
        Distribution of the states over all places.
    spectrum : (k,) float64
        Leading singular values of the counts of pairs: the first and the last symbol of a window.
    symbol_shares : (n,) float64
        Share of each symbol among the middle symbols of windows.
    observable : Operators, optional
        Matrices that predict symbols without the parameters of the model; None if they would be too
        large.
    windows : int
        Number of windows of three symbols in the fit.
    short : int
        Number of sequences of fewer than three symbols, which contribute only to `start`.
    turned : int
        Number of states whose estimated distributions were mostly negative. There is little
        evidence for these states.
    beginnings : int
        Number of first symbols of sequences, from which `start` is estimated. If there are too few,
        `start` is `weights`.
    untold : int
        Number of states whose next state could not be estimated. Their column of `transition` is
        uniform.
    refined : int
        Number of rounds that refined the model on the table of counted windows.
    window_score : float
        Mean log-likelihood of a window after refinement, in nats; NaN without refinement.
    held_out : HeldOut, optional
        Log-likelihood of the windows of each half under a model of the other half, if requested.
    bars, word_bars : (k,) and (n, k) float64, optional
        Expected L1 error of each column of `emission` before refinement, and standard errors of its
        entries. They need statistics with halves of the sequences.
    documents : int
        Number of sequences in the fit.
    polishing : Polishing, optional
        How the model was polished. Polishing does not change error bars, scores and operators.
    since, until, half_life
        As for any model.

    Examples
    --------
    >>> model = HiddenMarkovModel(
    ...     np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([[0.9, 0.2], [0.1, 0.8]]),
    ...     np.array([0.5, 0.5]), np.array([0.6, 0.4]))
    >>> model.decode(SymbolBatch.of([[0, 0, 1, 1]]))[1]
    array([0, 0, 1, 1], dtype=int32)
    """

    name: ClassVar[str] = "hmm"
    record: ClassVar[str] = "sequence"
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
        """Return a bound on the bytes of a fit: of three views, and of all observable operators."""
        return 8 * int((10 + 2 * options.topics) * foundation.rows * options.topics)

    @property
    def n_topics(self) -> int:
        """Number of states k."""
        return self.weights.size

    @property
    def tables(self) -> dict[str, NDArray[np.float64]]:
        """(n, k) symbol distributions of the states."""
        return {"symbols": self.emission}

    @property
    def triple_views(self) -> tuple[tuple[NDArray[np.float64], ...], NDArray[np.float64], float]:
        """Distributions of the middle, first and last symbol of a window; weights; alpha0 (0)."""
        joint = self.transition * self.weights
        middle = joint.sum(axis=1)
        before = joint.T / np.where(middle > 0, middle, 1)
        outer = self.emission @ before, self.emission @ self.transition
        return (self.emission, *outer), middle, 0.0

    @property
    def chain(self) -> HiddenChain[SymbolBatch]:
        """The model as a `HiddenChain`, which decodes sequences of symbols."""
        emission = DiscreteEmission(self.emission)
        return HiddenChain(emission, self.transition, self.start, self.weights)

    @property
    def rare(self) -> bool:
        """Whether symbols are so rare that the observable operators are mostly noise."""
        return self.windows < _RARE * len(self.emission)

    def transform(
        self, batch: SymbolBatch, method: str = "fixed-point", seed: int | None = None
    ) -> NDArray[np.float64]:
        """Return (chunks, k) probabilities of the states, averaged over the symbols of a chunk."""
        posterior = self.posterior(batch)
        sums = np.zeros((batch.documents, self.n_topics))
        np.add.at(sums, np.repeat(np.arange(batch.documents), np.diff(batch.offsets)), posterior)
        return sums / np.maximum(np.diff(batch.offsets), 1)[:, None]

    def read(self, batch: SymbolBatch, method: str = "viterbi", seed: int | None = None) -> Columns:
        """Return log probability, length, states and their probabilities for each chunk.

        "viterbi" finds the most likely sequence of states. "posterior" finds the most likely state
        at each place.
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
        """Return (symbols, k) probabilities of the states at each symbol, given the whole chunk."""
        return self.chain.posterior(batch)

    def log_likelihoods(self, batch: SymbolBatch) -> NDArray[np.float64]:
        """Return the (chunks,) log probability of each chunk; the symbol -1 is unobserved."""
        return self.chain.log_likelihoods(batch)

    def perplexity(self, batch: SymbolBatch) -> float:
        """Return the perplexity per symbol; lower is better.

        Raises
        ------
        InvalidInput
            No symbol is in the alphabet.
        """
        known = int((batch.symbols >= 0).sum())
        if not known:
            raise InvalidInput(
                "no symbol is in the alphabet of the model; give sequences over its alphabet"
            )
        return float(np.exp(-self.log_likelihoods(batch).sum() / known))

    def decode(self, batch: SymbolBatch) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Return the log probability of the most likely states of each chunk, and these states.

        States are (symbols,), found by the Viterbi algorithm.
        """
        return self.chain.decode(batch)

    def filtered(self, symbols: NDArray[np.int64]) -> tuple[NDArray[np.float64], int]:
        """Predict each next symbol of a sequence by the observable operators.

        Returns (t + 1, n) distributions of the first symbol and of the symbol after each of the t
        symbols, and the number of restarts. The symbol -1 is unobserved. Predictions are clipped at
        0, normalised, and mixed with a thousandth of the symbol shares. If no prediction is
        positive, the state is set back to the initial one, which counts as a restart.

        Raises
        ------
        InvalidInput
            The model has no operators, because they would be too large.
        ForeignStatistics
            A symbol is outside the alphabet.
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
        """Return the log probability of a sequence by the observable operators.

        The result can be minus infinity. The argument and the errors are those of `filtered`.
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

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        n, k = self.emission.shape
        return int(k * (n - 1) + k * (k - 1) + k - 1)

    def sample(self, length: int, seed: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Draw one random sequence; return its (length,) symbols and their hidden states."""
        rng = np.random.default_rng(seed)
        chances = rng.random((length, 2))
        moves, symbols = self.transition.cumsum(axis=0), self.emission.cumsum(axis=0)
        states, drawn = np.empty(length, np.int64), np.empty(length, np.int32)
        ahead = self.start.cumsum()
        for place, (move, symbol) in enumerate(chances):
            state = int(np.searchsorted(ahead, move * ahead[-1], side="right"))
            own = symbols[:, state]
            states[place] = state
            drawn[place] = np.searchsorted(own, symbol * own[-1], side="right")
            ahead = moves[:, state]
        return drawn, states

    def plot(
        self,
        number: int = 8,
        names: Sequence[str] | None = None,
        figure: Figure | None = None,
    ) -> list[Axes]:
        """Plot the transition matrix, and for each state a panel with its most likely symbols.

        Parameters
        ----------
        number : int
            Number of symbols to show for each state.
        names : sequence of str, optional
            Names of the n symbols; by default their numbers.
        figure : matplotlib.figure.Figure, optional
            Figure to draw on; by default a new one of pyplot.

        Returns
        -------
        list of matplotlib.axes.Axes
            The panels. The first one has the transition matrix.

        Raises
        ------
        InvalidInput
            `number` is below 1, `names` does not have one name for each symbol, or the figure is
            not one of matplotlib.
        ModuleNotFoundError
            matplotlib is not installed; the message has the command that installs it.
        """
        if number < 1:
            raise InvalidInput(f"the number of symbols is {number}; give at least 1")
        n = len(self.emission)
        called = names_for(names if names is not None else [*map(str, range(n))], n, "symbol")
        top = np.argsort(-self.emission, axis=0, kind="stable")[:number].T
        symbols = [[called[symbol] for symbol in row] for row in top]
        heights = [self.emission[row, j] for j, row in enumerate(top)]
        bars = self.word_bars
        errors = None if bars is None else [bars[row, j] for j, row in enumerate(top)]
        titles = [f"state {j} ({share:.0%})" for j, share in enumerate(self.weights)]
        return plot_chain(self.transition.T, titles, symbols, heights, errors, figure)

    def described(self) -> Description:
        """Return a description of the model: shares, self-transitions, error bars and warnings."""
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
            said.append(f"refined in {of_number(self.refined, 'round')}")
        if self.held_out is not None:
            said.append(
                f"held-out log-likelihood {self.held_out.mean:.4f} per window, perplexity "
                f"{window_perplexity(self.held_out):.4g} per symbol"
            )
        begun = len(said)
        if self.short:
            said.append(
                agreeing(self.short, "sequence has", "sequences have") + " fewer than three symbols"
            )
        if self.start is self.weights or np.array_equal(self.start, self.weights):
            said.append(
                "too few sequences to estimate the first state: assumed distributed as all states"
            )
        if self.untold:
            said.append(
                agreeing(self.untold, "state has", "states have")
                + " unknown successors: assumed uniform"
            )
        if self.turned and not self.refined:
            said.append(said_of_turned(self.turned))
        if self.rare:
            said.append("symbols are rare, so operators are mostly noise: use the parameters")
        cautions = tuple(said[begun:])
        said += self.said_of_polishing(facts)
        return Description(facts, columns, "; ".join(said), cautions=cautions)

    def _operators(self, symbols: NDArray[Any]) -> tuple[Operators, NDArray[np.float64]]:
        """Return the observable operators, and an array with the matrix of each symbol.

        If one of the given symbols is unobserved (-1), the last matrix of the array is that for -1.
        """
        if self.observable is None:
            raise InvalidInput(
                f"the model has no observable operators: they would be too large for "
                f"{len(self.emission):,} symbols and {self.n_topics} states; use its parameters "
                "`emission` and `transition`"
            )
        given, each = np.asarray(symbols), self.observable.symbols
        DiscreteEmission(self.emission).require(given)
        if given.size and given.min() < 0:
            each = np.concatenate([each, each.sum(axis=0, keepdims=True)])
        return self.observable, each


def window_perplexity(held_out: HeldOut) -> float:
    """Return the perplexity per symbol, from the held-out score of windows of three symbols.

    Examples
    --------
    >>> round(window_perplexity(HeldOut(-3.0, -3.0)), 4)
    2.7183
    """
    return float(np.exp(-held_out.mean / 3))
