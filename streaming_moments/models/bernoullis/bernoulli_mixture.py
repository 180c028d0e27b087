"""BernoulliMixture: mixture for sets of features that are independent given the component."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Columns, likeliest
from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.models.base import Description, FitOptions, require_joint, takes_n_topics
from streaming_moments.models.bernoullis.distinct import MOST_ROUNDS, SetMoments, components_of
from streaming_moments.models.bernoullis.halves import cross_fit
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.numbers.number_search import Trial, furthest_apart
from streaming_moments.models.provenance import Polishing
from streaming_moments.models.reading.inference import posteriors
from streaming_moments.models.rows import Rows
from streaming_moments.models.starts import MOMENTS, NOWHERE, PILOT
from streaming_moments.models.stored import StoredModel, stored_as
from streaming_moments.plots import Axes, Figure, names_for, plot_words
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.statistics import MomentStatistics, merge_blocks
from streaming_moments.statistics.sets.foundation import SetsFoundation

# When components of rows are inferred, each probability of a feature is mixed with this share of
# the mean probability over all components, so that no single feature excludes a component.
_SMOOTHING = 1e-3
_LEAST = 1e-9
_COPIES = 4  # a fit holds this many copies of the pair counts and slices in memory, as floats


@takes_n_topics
@dataclass(frozen=True, kw_only=True)
class BernoulliOptions(FitOptions):
    """Options of a fit to sets of features."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_joint(self.method, "moments of sets")

    @property
    def summary(self) -> str:
        """Summary of the options for logs."""
        return f"{self.topics} components"


@dataclass(frozen=True, eq=False, repr=False)
class BernoulliMixture(StoredModel):
    """Mixture of components in which features are independent, each with its own probability.

    Latent class analysis of binary rows by moments of distinct features (used by Ruffini, Gavalda
    and Limon 2017 to group patients). Components are ordered by decreasing weight.

    Parameters
    ----------
    probabilities : (n, k) float64
        Probability of each feature in each component, 0 to 1.
    weights : (k,) float64
        Share of the rows that each component has. The sum is 1.
    spectrum : (k - 1,) float64
        Variance between components, divided by the variance within components, along each
        direction. Values are decreasing.
    rounds : int
        Number of rounds that estimated the moments of each feature with itself. 60 is the limit,
        and means that the rounds did not converge.
    bars, probability_bars : (k,) and (n, k) float64, optional
        Expected L1 error of the probabilities of each component, scaled to sum 1, and standard
        errors of the probabilities. They need statistics with halves of the rows. After polishing,
        the model still has the values that were computed before the passes.
    held_out : HeldOut, optional
        Log-likelihood of the feature pairs of each half under a model of the other half. It is
        stored under the same conditions as `bars`.
    start : str
        "moments", or "pilot" if the passes over the rows started from components that were found in
        a sample of the rows, the pilot.
    polishing : Polishing, optional
        How the model was polished, if it was.
    documents, since, until, half_life
        As for any model.

    Examples
    --------
    >>> model = BernoulliMixture(np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0.5, 0.5]))
    >>> model.posterior(CountBatch.from_csr([[1, 0], [0, 0]])).round(2)
    array([[0.99, 0.01],
           [0.5 , 0.5 ]])
    """

    name: ClassVar[str] = "bernoulli_mixture"
    kind: ClassVar[str] = SetsFoundation.kind
    Options: ClassVar[type[FitOptions]] = BernoulliOptions
    compares_halves: ClassVar[bool] = True
    fewest: ClassVar[tuple[int, int]] = (50, 10)
    numbered: ClassVar[str] = "components"
    record: ClassVar[str] = "row"
    holds_out: ClassVar[str] = "pairs"

    probabilities: NDArray[np.float64] = field(metadata=stored_as(states=(1,)))
    weights: NDArray[np.float64] = field(metadata=stored_as(states=(0,)))
    _: KW_ONLY
    spectrum: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    rounds: int = 0
    bars: NDArray[np.float64] | None = field(
        default=None, metadata=stored_as(states=(0,), together="bars")
    )
    probability_bars: NDArray[np.float64] | None = field(
        default=None, metadata=stored_as(states=(1,), together="bars")
    )
    held_out: HeldOut | None = None
    start: str = MOMENTS
    polishing: Polishing | None = None

    @classmethod
    def fit(cls, rows: Rows, options: Any) -> Self:
        """Fit the mixture to statistics.

        Parameters
        ----------
        rows : Rows
            Statistics of sets of features.
        options : BernoulliOptions
            Options of the fit.

        Raises
        ------
        NotIdentifiable
            The statistics identify fewer components; the message says how many.
        """
        # read the blocks together with the sums of one half, because the next step needs both
        read = rows.prepared("reading row blocks", _itself, halves=True)
        blocks = read.each("reading row blocks", _itself)
        made: Self = rows.value(rows.once("components", cls.of_blocks, blocks, options))
        return made

    @classmethod
    def of_blocks(cls, blocks: Sequence[MomentStatistics], options: Any) -> Self:
        """Fit the mixture to the statistics of all row blocks; raise the errors of `fit`."""
        whole = merge_blocks(blocks) if len(blocks) > 1 else blocks[0]
        moments = SetMoments.of(whole)
        found = components_of(moments, options.topics, options.seed)
        even = whole.even_pair_counts
        halves = None if even is None else cross_fit(moments, found, even)
        return cls(
            found.probabilities,
            found.weights,
            spectrum=found.spectrum,
            rounds=found.rounds,
            documents=whole.length_histogram.n_documents,
            **({} if halves is None else vars(halves)),
        )

    @classmethod
    def blank(cls, statistics: MomentStatistics, number: int) -> Self:
        """Return a mixture of `number` equal components, for starts that use only this number."""
        rows = statistics.length_histogram.n_documents
        mean = statistics.word_counts / max(1, rows)
        even = np.full(number, 1 / number)
        return cls(np.tile(mean[:, None], number), even, documents=rows, start=NOWHERE)

    @classmethod
    def trial(cls, rows: Rows, options: Any) -> Trial | None:
        """Score the feature pairs of each half of the rows under a model of the other half.

        Raises the errors of `fit`.
        """
        made = cls.fit(rows, options)
        if made.held_out is None or made.bars is None:
            return None
        return Trial(made.held_out, furthest_apart(made.bars, made.shares.T))

    @classmethod
    def fit_bytes(cls, foundation: SetsFoundation, options: Any) -> int:
        """Return the bytes that a fit holds: pair counts, slices, probabilities, third moments."""
        basis = foundation.basis
        row = _COPIES * (basis.core + basis.columns**2) + 12 * int(options.topics)
        return 8 * (foundation.rows * row + 6 * basis.columns**3)

    @property
    def n_topics(self) -> int:
        """Number of components k."""
        return self.weights.size

    @property
    def n_features(self) -> int:
        """Number of features n."""
        return len(self.probabilities)

    @property
    def tables(self) -> dict[str, NDArray[np.float64]]:
        """(n, k) probability of each feature in each component."""
        return {"features": self.probabilities}

    @property
    def shares(self) -> NDArray[np.float64]:
        """(n, k) probabilities of the features of each component, scaled to sum 1."""
        return np.asarray(self.probabilities / np.maximum(self.probabilities.sum(axis=0), _LEAST))

    @property
    def smoothed(self) -> NDArray[np.float64]:
        """(n, k) probabilities for inference: a thousandth of each is the mean over components.

        So no single feature can exclude a component.
        """
        mean = np.clip(self.probabilities @ self.weights, _LEAST, 1 - _LEAST)
        return (1 - _SMOOTHING) * self.probabilities + _SMOOTHING * mean[:, None]

    def log_joint(self, batch: CountBatch) -> NDArray[np.float64]:
        """Return (rows, k) logarithms of the joint probability of each row and each component.

        This is `w_h prod_i p_ih^x_i (1 - p_ih)^(1 - x_i)` for row x and component h.

        The probabilities p are `smoothed`, so that no single feature excludes a component.

        Raises
        ------
        ForeignStatistics
            The batch has another number of features.
        """
        if batch.n_words != self.n_features:
            raise ForeignStatistics(
                f"rows have {batch.n_words} features, but the model has {self.n_features}; read "
                "rows of the store that it was fitted to, or rows with the same columns"
            )
        P = self.smoothed
        absent = np.log1p(-P)
        with np.errstate(divide="ignore"):
            constant = np.log(self.weights) + absent.sum(axis=0)
        return np.asarray(constant + _once(batch).to_csr() @ (np.log(P) - absent))

    def posterior(self, batch: CountBatch) -> NDArray[np.float64]:
        """Return the (rows, k) probability of each component, given the row.

        Raises the errors of `log_joint`.
        """
        return posteriors(self.log_joint(batch))

    def transform(
        self, batch: CountBatch, method: str = "fixed-point", seed: int | None = None
    ) -> NDArray[np.float64]:
        """Return the result of `posterior`."""
        return self.posterior(batch)

    def read(self, batch: CountBatch, method: str = "", seed: int | None = None) -> Columns:
        """Return features, most likely component, log-likelihood and proportions of each row."""
        logs = self.log_joint(batch)
        shares = posteriors(logs)
        return Columns.of(
            length=np.diff(batch.indptr),
            topic=likeliest(shares),
            log_likelihood=np.logaddexp.reduce(logs, axis=1),
            proportions=shares,
        )

    def assign(self, batch: CountBatch) -> NDArray[np.int64]:
        """Return the (rows,) most likely components; raise the errors of `log_joint`."""
        return np.asarray(self.log_joint(batch).argmax(axis=1), dtype=np.int64)

    def log_likelihoods(self, batch: CountBatch) -> NDArray[np.float64]:
        """Return the (rows,) log-probabilities of rows; raise the errors of `log_joint`."""
        return np.asarray(np.logaddexp.reduce(self.log_joint(batch), axis=1))

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        return self.probabilities.size + self.weights.size - 1

    def sample(self, number: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw (number, n) random rows of 0 and 1; also return the component of each row."""
        rng = np.random.default_rng(seed)
        drawn = rng.choice(self.weights.size, number, p=self.weights)
        chances = self.probabilities.T[drawn]
        return (rng.random(chances.shape) < chances).astype(np.int64), drawn

    def plot(
        self,
        number: int = 8,
        names: Sequence[str] | None = None,
        figure: Figure | None = None,
    ) -> list[Axes]:
        """Plot a panel for each component, with the features that are most characteristic of it.

        These are the features whose probability in the component exceeds their frequency in all
        rows most.

        Parameters
        ----------
        number : int
            Number of features to show for each component.
        names : sequence of str, optional
            Names of the features; by default "feature" and a number.
        figure : matplotlib.figure.Figure, optional
            Figure to draw on; by default a new one of pyplot.

        Returns
        -------
        list of matplotlib.axes.Axes
            The panels.

        Raises
        ------
        InvalidInput
            `number` is below 1, the number of names differs from the features, or the figure is not
            one of matplotlib.
        ModuleNotFoundError
            matplotlib is not installed; the message has the command that installs it.
        """
        called = names_for(names, self.n_features, "feature")
        if number < 1:
            raise InvalidInput(f"the number of features is {number}; give at least 1")
        more = self.probabilities - (self.probabilities @ self.weights)[:, None]
        top = np.argsort(-more, axis=0, kind="stable")[:number].T
        bars = self.probability_bars
        return plot_words(
            [f"component {j} ({share:.0%})" for j, share in enumerate(self.weights)],
            [[called[feature] for feature in row] for row in top],
            [self.probabilities[row, j] for j, row in enumerate(top)],
            None if bars is None else [bars[row, j] for j, row in enumerate(top)],
            figure,
            "probability of the feature in the component",
        )

    def described(self) -> Description:
        """Return a description of the model: weights, set sizes and error bars of components."""
        columns = {"weight": self.weights, "features a row": self.probabilities.sum(axis=0)}
        if self.bars is not None:
            columns["error bar"] = self.bars
        facts: dict[str, Any] = {"features": self.n_features, "rounds": self.rounds}
        said = [f"probabilities of {self.n_features:,} features"]
        if self.start == PILOT:
            facts["start"] = self.start
            said.append("started from a pilot of the rows, which makes the rows more likely")
        cautions = []
        if self.rounds >= MOST_ROUNDS:
            cautions.append(
                f"moments of equal features did not converge in {MOST_ROUNDS} rounds: ask for "
                "fewer components, count more rows, or polish"
            )
        said += cautions
        if self.held_out is not None:
            facts["held_out"] = asdict(self.held_out) | {"mean": self.held_out.mean}
            said.append(f"held-out log-likelihood {self.held_out.mean:.4f} per pair")
        if self.polishing is not None:
            facts["polishing"] = asdict(self.polishing)
            said.append(self.polishing.sentence)
            if self.bars is not None:
                facts["error_bars_of"] = "the fit before it was polished"
                said.append("error bars are of the fit before that")
        return Description(facts, columns, "; ".join(said), cautions=tuple(cautions))


def _once(batch: CountBatch) -> CountBatch:
    return SetsFoundation.distinct(batch)


def _itself(statistics: Any) -> Any:
    return statistics
