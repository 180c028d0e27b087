"""Independent intensities: topics whose intensities in a document are independent.

This is the Gamma-Poisson model, or discrete independent component analysis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.evidence import Directions
from streaming_moments.decompositions.forms import (
    DocumentLengths,
    PerDocument,
    Seen,
    require_pooled,
)
from streaming_moments.decompositions.svtd import recover
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.models.base import Description, FitOptions, option, takes_n_topics
from streaming_moments.models.reading import topic_reading
from streaming_moments.models.rows import Rows
from streaming_moments.models.stored import stored_as
from streaming_moments.models.sweeps import TopicRows, both_rows, fitted_on, mean_columns
from streaming_moments.models.topics import TopicModel
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.lengths.histogram import Lengths
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.statistics.counts.whitening import Whitening
from streaming_moments.statistics.row_block import interleaved


@dataclass(frozen=True)
class Cumulants(PerDocument):
    """Cumulants of word counts, in place of moments (Podosinnikova, Bach, Lacoste-Julien 2015).

        A = M2 - M1 M1'
        T = M3 - M2 (x) M1, in its three places, + 2 M1 (x) M1 (x) M1

    where M1, M2, M3 are means over documents of the counts of words, pairs and triples. The
    cumulants of a sum of independent variables are the sums of theirs. `alpha0` is the value for
    which LDA has the same A up to a factor.
    """

    alpha0: float = 0.0

    @property
    def mean_share(self) -> float:
        """1."""
        return 1.0

    def third(self, raw: Seen, crossed: Callable[[], Seen], cubes: Callable[[float], Seen]) -> Seen:
        """Return the third cumulant T; `raw` holds M3."""
        raw -= crossed()
        raw += cubes(2.0)
        return raw


@takes_n_topics
@dataclass(frozen=True, kw_only=True)
class IntensityOptions(FitOptions):
    """Options of a fit of independent intensities."""

    max_alpha0: float = option("Largest alpha0 that document lengths may imply.", 5.0)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class IndependentIntensities(TopicModel):
    """Topics with independent intensities: `h_j ~ Gamma(shape c_j, rate b_j)`, `x ~ Poisson(D h)`.

    If all rates are equal, this is LDA with `alpha = c`, and document lengths have a negative
    binomial distribution with shape alpha0. So a fit computes alpha0 from the lengths. The result
    is correct only if lengths have this distribution. Therefore `described` shows it, and a fit
    refuses impossible values. `weights` are shares of the words.

    Parameters
    ----------
    shapes : (k,) float64
        c, the shapes of the Gamma distributions.
    rates : (k,) float64
        b, the rates of the Gamma distributions; a document has `c / b` words of a topic on average.
    variances : (k,) float64
        Variances of the intensities, from second moments; `c / b^2` if the model is correct.

    Examples
    --------
    >>> from streaming_moments import Basis, MomentStatistics
    >>> from streaming_moments.models.rows import InMemory
    >>> rng = np.random.default_rng(0)
    >>> batch = CountBatch.from_csr(rng.poisson(rng.gamma(0.5, 20.0, (4000, 2)) @ np.eye(2, 3)))
    >>> basis = Basis.from_pilot(batch, max_topics=2, length_weights="pooled")
    >>> statistics = MomentStatistics.of(batch, basis)
    >>> options = IndependentIntensities.Options(topics=2)
    >>> IndependentIntensities.fit(InMemory((statistics,)), options).shapes.round(1)
    array([0.5, 0.5])
    """

    name: ClassVar[str] = "independent"
    finds_topics: ClassVar[bool] = False
    holds_out: ClassVar[str] = ""
    fewest: ClassVar[tuple[int, int]] = (0, 0)
    Options: ClassVar[type[FitOptions]] = IntensityOptions
    compares_halves: ClassVar[bool] = False

    shapes: NDArray[np.float64] = field(metadata=stored_as(states=(0,)))
    rates: NDArray[np.float64] = field(metadata=stored_as(states=(0,)))
    variances: NDArray[np.float64] = field(metadata=stored_as(states=(0,)))

    @classmethod
    def fit(cls, rows: Rows, options: Any) -> Self:
        """Fit the model to statistics.

        Parameters
        ----------
        rows : Rows
            Statistics of documents.
        options : IntensityOptions
            Options of the fit.

        Raises
        ------
        NotIdentifiable
            The document lengths imply an alpha0 of 0 or below, or above the option `max_alpha0`.
            Other errors are those of `fit_by`.
        """
        require_pooled(rows.lengths.whole)
        implied = implied_alpha0(rows.lengths.whole)
        if not 0 < implied <= options.max_alpha0:
            raise NotIdentifiable(
                f"lengths vary too little: they imply alpha0 {implied:.4g}, but independent "
                f"intensities need alpha0 above 0 and up to {options.max_alpha0:g}; fit topics "
                "with an alpha0 of your own, or raise max_alpha0"
            )
        return cls.of_form(rows, Cumulants(implied), options, both_rows)

    @classmethod
    def fit_bytes(cls, foundation: Any, options: Any) -> int:
        """Return the bytes that a fit needs; it averages two estimates of each topic."""
        return 8 * 9 * int(foundation.rows * options.topics)

    @classmethod
    def finished(
        cls,
        whitening: Whitening,
        directions: Directions,
        parts: Sequence[TopicRows],
        lengths: RowLengths[Lengths],
        basis: Basis,
        method: str,
    ) -> Self:
        """Make the model from two estimates of each topic, which the parts of all blocks hold.

        A column of the estimate from the third cumulant sums to `2 / b_j`. A column of the estimate
        from the second cumulant sums to the standard deviation of h_j. The shapes are
        `c_j = (o_j . u)^2`, where o_j is the whitened direction of topic j and u is the whitened
        mean of the counts. Topics are the means of both estimates.
        """
        rows = interleaved([rows for rows, _ in parts])
        scales, deviations = np.hsplit(rows.sum(axis=0), 2)
        shapes, rates = (directions.vectors.T @ whitening.first) ** 2, 2 / np.abs(scales)
        found = recover(mean_columns(rows), shapes / rates)
        return cls(
            topics=found.topics,
            weights=found.weights,
            alpha_sum=whitening.form.alpha0,
            raw_topics=found.raw,
            shapes=shapes[found.order],
            rates=rates[found.order],
            variances=deviations[found.order] ** 2,
            **fitted_on(whitening, parts, lengths, basis, method),
        )

    @property
    def alpha(self) -> NDArray[np.float64]:
        """The (k,) shapes; they are the Dirichlet parameters alpha if all rates are equal."""
        return self.shapes

    def described(self) -> Description:
        """Describe the model, with the implied alpha0 and a ratio of two variance estimates."""
        off = float(np.abs(np.log(self.shapes / self.rates**2 / self.variances)).max())
        said = super().described()
        return Description(
            {**said.facts, "check": off},
            {"words a document": self.shapes / self.rates, "shape": self.shapes},
            f"{said.sentence}; the lengths imply alpha0 {self.alpha0:.3g}; variances by the second "
            f"and third moment differ by a factor of up to {np.exp(off):.2f}",
            cautions=said.cautions,
        )

    def transform(
        self,
        batch: CountBatch,
        method: Literal["fixed-point", "gibbs"] = "fixed-point",
        seed: int | None = None,
        iterations: int = 100,
        smoothing: float = 1e-3,
    ) -> NDArray[np.float64]:
        """Infer the share of each topic in the intensity of a document, by fixed point iteration.

        The iteration is `h_j <- (c_j + sum_i x_i h_j d_ij / (h . d_i)) / (b_j + 1)`. In terms of
        `(b_j + 1) h_j`, it is the fixed point of LDA with columns `d_j / (b_j + 1)`. Parameters are
        as in `TopicModel.transform`.

        Raises
        ------
        InvalidInput
            The method is "gibbs".
        ForeignStatistics
            The batch has another vocabulary.
        """
        if method != "fixed-point":
            raise InvalidInput(
                f'independent intensities cannot be inferred by "{method}"; choose "fixed-point"'
            )
        batch, topics = self._as_read(batch, smoothing)
        found = np.empty((batch.documents, self.n_topics))
        total = float(self.shapes.sum())
        topic_reading.proportions(
            batch.indptr,
            batch.words,
            batch.counts,
            topics / (self.rates + 1),
            self.shapes / total,
            total,
            iterations,
            found,
        )
        found /= self.rates + 1
        return np.asarray(found / found.sum(axis=1, keepdims=True))


def implied_alpha0(lengths: DocumentLengths) -> float:
    """Return the alpha0 of the LDA with the same second moment: `r / (1 - r)`, `r = C1^2 / (N C2)`.

    It is infinite for Poisson lengths, and negative for lengths that vary less than Poisson
    lengths.

    Examples
    --------
    >>> from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
    >>> round(implied_alpha0(LengthHistogram.of([1, 4, 10])), 6)
    2.777778
    """
    share = lengths.C1**2 / (lengths.weight * lengths.C2)
    return share / (1 - share) if share != 1 else np.inf
