"""BernoulliMixture: rows are sets of features, which are independent given the component."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Columns, likeliest
from streaming_moments.errors import ForeignStatistics
from streaming_moments.models.base import Description, FitOptions, require_joint
from streaming_moments.models.bernoullis.distinct import MOST_ROUNDS, SetMoments, components_of
from streaming_moments.models.bernoullis.halves import cross_fit
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.inference import posteriors
from streaming_moments.models.numbers.number_search import Trial, furthest_apart
from streaming_moments.models.provenance import Polishing
from streaming_moments.models.rows import Rows
from streaming_moments.models.stored import StoredModel, stored_as
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.statistics import MomentStatistics, merge_blocks
from streaming_moments.statistics.sets.foundation import SetsFoundation

_SMOOTHING = 1e-3  # share of the mean in the probabilities that rows are read with
_LEAST = 1e-9
_COPIES = 4  # of pairs and slices as floats


@dataclass(frozen=True, kw_only=True)
class BernoulliOptions(FitOptions):
    """What a fit of sets is told."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_joint(self.method, "moments of sets")

    @property
    def summary(self) -> str:
        """What a log says of the fit."""
        return f"{self.topics} components"


@dataclass(frozen=True, eq=False, repr=False)
class BernoulliMixture(StoredModel):
    """Components in which a row has each feature with a probability, independent of all others.

    Latent class analysis of binary rows, by moments of distinct features (Ruffini, Gavalda, Limon
    2017 group patients so). Components are ordered by falling weight.

    Parameters
    ----------
    probabilities : (n, k) float64
        Of each feature in each component, 0 to 1.
    weights : (k,) float64
        Shares of the rows, sum 1.
    spectrum : (k - 1,) float64
        Variances between components through variances within, falling.
    rounds : int
        In which moments of equal features were filled in; 60 where they did not settle.
    bars, probability_bars : (k,) and (n, k) float64, optional
        L1 error to be expected of the features of each component, as shares of sum 1, and standard
        errors of the probabilities, where the statistics keep halves of the rows; of a polished
        model those from before its passes.
    held_out : HeldOut, optional
        How likely the pairs of features of each half are by the other one; as the bars.
    polishing : Polishing, optional
        How, where passes were made over rows.
    documents, since, until, half_life
        As of any model.

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
    numbered: ClassVar[str] = "components"
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
    polishing: Polishing | None = None

    @classmethod
    def fit(cls, rows: Rows, options: Any) -> Self:
        """The mixture of these statistics.

        Parameters
        ----------
        rows : Rows
            Of sets of features.
        options : BernoulliOptions
            How.

        Raises
        ------
        NotIdentifiable
            The statistics do not hold as many components: says how many.
        """
        # with their halves, also where each step reads the blocks anew
        read = rows.prepared("reading row blocks", _itself, halves=True)
        blocks = read.each("reading row blocks", _itself)
        made: Self = rows.value(rows.once("components", cls.of_blocks, blocks, options))
        return made

    @classmethod
    def of_blocks(cls, blocks: Sequence[MomentStatistics], options: Any) -> Self:
        """The fit, of the statistics of all row blocks; errors as `fit`."""
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
    def trial(cls, rows: Rows, options: Any) -> Trial | None:
        """What the pairs of each half say of the other; errors as `fit`."""
        made = cls.fit(rows, options)
        if made.held_out is None or made.bars is None:
            return None
        return Trial(made.held_out, furthest_apart(made.bars, made.shares.T))

    @classmethod
    def fit_bytes(cls, foundation: SetsFoundation, options: Any) -> int:
        """Pairs and slices as floats, the probabilities, and third moments of the sketch."""
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
        """(n, k) probabilities."""
        return {"features": self.probabilities}

    @property
    def shares(self) -> NDArray[np.float64]:
        """(n, k) features of each component as shares of sum 1."""
        return np.asarray(self.probabilities / np.maximum(self.probabilities.sum(axis=0), _LEAST))

    def log_joint(self, batch: CountBatch) -> NDArray[np.float64]:
        """(rows, k) logarithms of `w_h prod_i p_ih^x_i (1 - p_ih)^(1 - x_i)`.

        Read with a thousandth of the mean mixed in, so that no feature alone rules one out.

        Raises
        ------
        ForeignStatistics
            The batch has another number of features.
        """
        if batch.n_words != self.n_features:
            raise ForeignStatistics(
                f"rows of {batch.n_words} features, the model knows {self.n_features}; read rows "
                "of its own store, or with the columns it was fitted on"
            )
        mean = np.clip(self.probabilities @ self.weights, _LEAST, 1 - _LEAST)
        P = (1 - _SMOOTHING) * self.probabilities + _SMOOTHING * mean[:, None]
        absent = np.log1p(-P)
        with np.errstate(divide="ignore"):
            constant = np.log(self.weights) + absent.sum(axis=0)
        return np.asarray(constant + _once(batch).to_csr() @ (np.log(P) - absent))

    def posterior(self, batch: CountBatch) -> NDArray[np.float64]:
        """(rows, k) probability of each component given each row; errors as `log_joint`."""
        return posteriors(self.log_joint(batch))

    def transform(
        self, batch: CountBatch, method: str = "fixed-point", seed: int | None = None
    ) -> NDArray[np.float64]:
        """As `posterior`."""
        return self.posterior(batch)

    def read(self, batch: CountBatch, method: str = "", seed: int | None = None) -> Columns:
        """Features, likeliest component, log likelihood and proportions of each row."""
        logs = self.log_joint(batch)
        shares = posteriors(logs)
        return Columns.of(
            length=np.diff(batch.indptr),
            topic=likeliest(shares),
            log_likelihood=np.logaddexp.reduce(logs, axis=1),
            proportions=shares,
        )

    def assign(self, batch: CountBatch) -> NDArray[np.int64]:
        """(rows,) the likeliest component of each row; errors as `log_joint`."""
        return np.asarray(self.log_joint(batch).argmax(axis=1), dtype=np.int64)

    def log_likelihoods(self, batch: CountBatch) -> NDArray[np.float64]:
        """(rows,) logarithm of the probability of each row; errors as `log_joint`."""
        return np.asarray(np.logaddexp.reduce(self.log_joint(batch), axis=1))

    def described(self) -> Description:
        """Weights, sizes of the sets and error bars of the components."""
        columns = {"weight": self.weights, "features a row": self.probabilities.sum(axis=0)}
        if self.bars is not None:
            columns["error bar"] = self.bars
        facts: dict[str, Any] = {"features": self.n_features, "rounds": self.rounds}
        said = [f"probabilities of {self.n_features:,} features"]
        if self.rounds >= MOST_ROUNDS:
            said.append(
                f"moments of equal features did not settle in {MOST_ROUNDS} rounds: ask for fewer "
                "components, count more rows, or polish"
            )
        if self.held_out is not None:
            facts["held_out"] = asdict(self.held_out) | {"mean": self.held_out.mean}
            said.append(f"a pair held out had log likelihood {self.held_out.mean:.4f}")
        if self.polishing is not None:
            facts["polishing"] = asdict(self.polishing)
            said.append(self.polishing.sentence)
            if self.bars is not None:
                facts["error_bars_of"] = "the fit before it was polished"
                said.append("error bars are of the fit before that")
        return Description(facts, columns, "; ".join(said))


def _once(batch: CountBatch) -> CountBatch:
    return SetsFoundation.distinct(batch)


def _itself(statistics: Any) -> Any:
    return statistics
