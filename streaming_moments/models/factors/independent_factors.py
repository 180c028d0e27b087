"""IndependentFactors: model of dense vectors as a linear mixture of independent factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Columns
from streaming_moments.decompositions.vectors.factors import (
    NOISES,
    ORDERS,
    require_noise,
    require_order,
    require_significant,
    weak_factors,
)
from streaming_moments.decompositions.vectors.signal import signal_directions
from streaming_moments.deprecation import renamed_fields
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.models.base import (
    Description,
    FitOptions,
    option,
    require_joint,
    takes_n_topics,
)
from streaming_moments.models.factors.order import AUTO, fitted, matched_halves
from streaming_moments.models.provenance import Polishing
from streaming_moments.models.rows import Rows
from streaming_moments.models.stored import StoredModel, is_known, stored_as
from streaming_moments.models.vectors import (
    BY_SPECTRUM,
    fit_of_blocks,
    read_by_parts,
    require_number,
    tensor_bytes,
)
from streaming_moments.printing.plural import agreeing
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.statistics.vectors.moments import VectorMoments
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.statistics.vectors.statistics import VectorStatistics, joined_blocks

WEAK = ("refuse", "keep")


def _require_order(name: str) -> None:
    if name != AUTO:
        require_order(name)


def _require_weak(name: str) -> None:
    if name not in WEAK:
        raise InvalidInput(f'weak is "{name}"; choose {" or ".join(WEAK)}')


@takes_n_topics
@dataclass(frozen=True, kw_only=True)
class FactorOptions(FitOptions):
    """Options of a fit of independent factors."""

    topics: int = option(
        "Number of factors, or auto: as many as the spectrum separates from noise.",
        check=partial(require_number, of="factors", least=BY_SPECTRUM),
        auto=("auto",),
        found=BY_SPECTRUM,
        also=("components",),
    )
    order: str = option(
        "Cumulants that separate factors. third: for factors with skew; fourth: for factors "
        "with kurtosis; both: for any; auto: those for which halves of the rows agree best.",
        AUTO,
        _require_order,
        choices=(AUTO, *ORDERS),
    )
    noise: str = option(
        "Covariance of the normal noise: spherical, diagonal or full. Full noise needs fourth "
        "moments.",
        "spherical",
        require_noise,
        choices=NOISES,
    )

    weak: str = option(
        "What to do with factors whose cumulants do not exceed noise.",
        "refuse",
        _require_weak,
        choices=WEAK,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_joint(self.method, "moments of vectors")

    @property
    def summary(self) -> str:
        """Summary of the fit for logs."""
        return f"{self.topics or 'as many as there are'} factors"

    @property
    def label(self) -> str:
        """Label of these options, which becomes part of the name of a model."""
        number = f"k{self.topics}" if self.topics else "auto"
        return f"{number}-{self.order}-{self.noise}"


@renamed_fields(
    "0.3.0", "0.4.0", told_apart="n_directions", without="n_missing", drawn_in="n_clipped"
)
@dataclass(frozen=True, eq=False, repr=False)
class IndependentFactors(StoredModel):
    """Independent factors h of `x = mean + mixing h + noise`, by decreasing cumulant.

    Parameters
    ----------
    mixing : (d, k) float64
        Column of each factor. Factors have variance 1, and signs that make their skewness positive.
    unmixing : (d, k) float64
            `unmixing' (x - mean)` are the factors of a row x, plus noise.
    mean : (d,) float64
        Mean of the rows.
    noise : (d,) float64
        Noise variance of each coordinate; empty for noise of unknown covariance.
    skewness, kurtosis : (k,) float64
        Third and excess fourth cumulants of the factors; kurtosis is NaN without fourth moments.
    skewness_error, kurtosis_error : (k,) float64
        Standard errors of these cumulants if rows were normally distributed.
    spectrum : (k,) float64
        Eigenvalues of the covariance of the rows without noise.
    order, noise_kind : str
        Order of the cumulants that separated the factors, and the value of the option `noise`.
    order_told : str
        Why "auto" chose this order; empty if it was given.
    n_directions : int
        Number of directions in which rows vary beyond noise.
    n_missing, n_clipped : int
        Number of records that are not numeric, and of rows that were clipped to the radius.
    bars : (k,) float64, optional
        Expected distance of each column of `mixing` from the true column, estimated from two
        halves of the rows.
    polishing : Polishing, optional
        How the factors were polished, if they were.
    documents, since, until, half_life
        As for any model.

    Examples
    --------
    >>> half = np.sqrt(0.5)
    >>> turn = np.array([[half, -half], [half, half]])
    >>> model = IndependentFactors(turn, turn, np.array([1.0, 1.0]))
    >>> model.values(np.array([[2.0, 2.0]])).round(2) + 0.0
    array([[1.41, 0.  ]])
    """

    name: ClassVar[str] = "factors"
    numbered: ClassVar[str] = "factors"
    record: ClassVar[str] = "row"
    of_numbers: ClassVar[bool] = True
    kind: ClassVar[str] = VectorsFoundation.kind
    Options: ClassVar[type[FitOptions]] = FactorOptions
    compares_halves: ClassVar[bool] = True

    mixing: NDArray[np.float64]
    unmixing: NDArray[np.float64]
    mean: NDArray[np.float64]
    _: KW_ONLY
    noise: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    skewness: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    kurtosis: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    skewness_error: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    kurtosis_error: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    spectrum: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    order: str = "third"
    noise_kind: str = "spherical"
    n_directions: int = field(default=0, metadata=stored_as(name="told_apart"))
    n_missing: int = field(default=0, metadata=stored_as(name="without"))
    n_clipped: int = field(default=0, metadata=stored_as(name="drawn_in"))
    bars: NDArray[np.float64] | None = None
    order_told: str = ""
    polishing: Polishing | None = None

    @classmethod
    def fit(cls, rows: Rows, options: Any) -> Self:
        """Fit the factors to statistics.

        Parameters
        ----------
        rows : Rows
            Rows of `VectorStatistics`.
        options : FactorOptions
            Options of the fit.

        Raises
        ------
        NotIdentifiable
            The statistics separate fewer factors than the options ask for; the message says why.
        InvalidInput
            Fourth moments are needed, but the statistics have none.
        """
        return fit_of_blocks(rows, "factors", cls.of_blocks, options)

    @classmethod
    def of_blocks(cls, blocks: Sequence[VectorStatistics], options: Any) -> Self:
        """Fit the factors to the statistics of all row blocks; raises the same errors as `fit`."""
        whole = joined_blocks(blocks)
        moments = VectorMoments.of(whole)
        n_directions = signal_directions(moments, diagonal=options.noise == "diag")
        k = options.topics or n_directions
        if not k:
            raise NotIdentifiable(
                f"{moments.number:,} rows vary in no direction beyond noise, so there are no "
                "factors; add rows, or ask for a number of factors"
            )
        found, order, halves, told = fitted(whole, moments, k, options.order, options.noise)
        if options.weak == "refuse":
            require_significant(found, order)
        bars = None
        if halves:
            even, odd = matched_halves(found, halves)
            bars = np.linalg.norm(even - odd, axis=1) / 2
        grid, totals = moments.grid, whole.totals
        return cls(
            found.mixing * grid.step,
            found.unmixing / grid.step,
            grid.values(moments.mean),
            noise=found.noise * grid.step**2,
            skewness=found.skewness,
            kurtosis=found.kurtosis,
            skewness_error=found.skewness_error,
            kurtosis_error=found.kurtosis_error,
            spectrum=found.spectrum,
            order=order,
            order_told=told,
            noise_kind=options.noise,
            n_directions=n_directions,
            documents=totals.n_documents,
            n_missing=totals.without,
            n_clipped=totals.clipped,
            bars=None if bars is None else bars * grid.step,
        )

    @classmethod
    def fit_bytes(cls, foundation: VectorsFoundation, options: Any) -> int:
        """Return the bytes that a fit of any model of vectors needs."""
        return tensor_bytes(foundation)

    @property
    def per_state(self) -> Columns:
        """Skewness and kurtosis of each factor, with errors; error bars of columns if known."""
        names = ("skewness", "kurtosis", "skewness_error", "kurtosis_error", "bars")
        values = {name: getattr(self, name) for name in names}
        return Columns.of(**{name: one for name, one in values.items() if is_known(one)})

    @property
    def n_topics(self) -> int:
        """Number of factors k."""
        return int(self.mixing.shape[1])

    @property
    def dimension(self) -> int:
        """Number d of coordinates of a row."""
        return self.mean.size

    @property
    def weak(self) -> int:
        """Number of factors whose skewness and kurtosis are within the noise of their estimates."""
        # a polished model is judged by both cumulants, because passes separate factors by any
        # deviation from normality
        return weak_factors(self, self.order if self.polishing is None else "both").size

    @property
    def _of_both_signs(self) -> bool:
        return bool((self.kurtosis > 0).any() and (self.kurtosis < 0).any())

    @property
    def weights(self) -> NDArray[np.float64]:
        """(k,) share of each factor in the total variance that all factors explain."""
        sizes = np.square(self.mixing).sum(axis=0)
        return np.asarray(sizes / sizes.sum())

    def transform(
        self, batch: VectorBatch, method: str = "fixed-point", seed: int | None = None
    ) -> NDArray[np.float64]:
        """Return the (N, k) factors of the rows of a batch; raises as `values` does."""
        return self.values(batch.values)

    def read(self, batch: VectorBatch, method: str = "", seed: int | None = None) -> Columns:
        """Return the factors of each row."""
        return Columns.of(factors=self.values(batch.values))

    def values(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Estimate the (n, k) factors of (n, d) rows: factors of variance 1, plus noise.

        Raises
        ------
        ForeignStatistics
            The rows have another width.
        """
        return read_by_parts(rows, self.dimension, self._values)

    def _values(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray((rows.astype(np.float64) - self.mean) @ self.unmixing)

    def rows_of(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (n, d) rows that (n, k) factors give without noise."""
        return np.asarray(values @ self.mixing.T + self.mean)

    def described(self) -> Description:
        """Describe each factor by its skewness and kurtosis, beside their standard errors."""
        columns = {
            "share": self.weights,
            "skewness": self.skewness,
            "of noise": self.skewness_error,
        }
        if not np.isnan(self.kurtosis).any():
            columns |= {"kurtosis": self.kurtosis, "kurtosis of noise": self.kurtosis_error}
        if self.bars is not None:
            columns["error bar"] = self.bars
        facts: dict[str, Any] = {
            "order": self.order,
            "noise_kind": self.noise_kind,
            "told_apart": self.n_directions,
            "without": self.n_missing,
            "drawn_in": self.n_clipped,
            "factors": self.n_topics,
            "dimension": self.dimension,
            "weak": self.weak,
        }
        said = [
            f"{self.n_topics} factors of {self.dimension} dimensions by {self.order} cumulants, "
            f"{self.noise_kind} noise"
        ]
        if self.order_told:
            facts["order_told"] = self.order_told
            said.append(self.order_told)
        begun = len(said)
        if self.n_topics == self.dimension and self.noise_kind != "full":
            said.append("with as many factors as dimensions, the fit assumes no noise")
        elif self.n_topics != self.n_directions and self.noise_kind != "full":
            said.append(f"the spectrum separates {self.n_directions} from noise")
        if self.noise_kind == "full" and self.polishing is None and self._of_both_signs:
            said.append("kurtoses have both signs, so only passes (polish) remove the noise")
        if self.weak:
            said.append(f"{self.weak} have cumulants within noise and are unreliable")
        if self.n_missing:
            said.append(
                agreeing(
                    self.n_missing,
                    "record is not numeric and was skipped",
                    "records are not numeric and were skipped",
                )
            )
        cautions = tuple(said[begun:])
        if self.polishing is not None:
            facts["polishing"] = asdict(self.polishing)
            said.append(self.polishing.sentence)
        return Description(facts, columns, "; ".join(said), cautions=cautions)
