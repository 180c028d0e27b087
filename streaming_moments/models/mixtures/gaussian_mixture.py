"""GaussianMixture: model of dense vectors by components, each with a mean and a variance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Columns, likeliest
from streaming_moments.decompositions.vectors.lifted_mixture import (
    COVARIANCES,
    Components,
    mixture_components,
    require_covariance,
)
from streaming_moments.decompositions.vectors.signal import signal_directions
from streaming_moments.deprecation import renamed_fields
from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import (
    Description,
    FitOptions,
    option,
    require_joint,
    takes_n_topics,
)
from streaming_moments.models.mixtures.matching import matched_order
from streaming_moments.models.numbers.number_search import (
    Trial,
    furthest_apart,
    not_found_again,
)
from streaming_moments.models.provenance import Polishing
from streaming_moments.models.reading.inference import posteriors
from streaming_moments.models.rows import Rows
from streaming_moments.models.starts import MOMENTS, PILOT
from streaming_moments.models.stored import StoredModel, stored_as
from streaming_moments.models.vectors import (
    fit_of_blocks,
    fits_of_halves,
    held_out_rows,
    read_by_parts,
    require_number,
    tensor_bytes,
)
from streaming_moments.numerics.pooled import pooled
from streaming_moments.plots import Axes, Figure, names_for, plot_means
from streaming_moments.printing.plural import agreeing, of_number
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.statistics.vectors.moments import VectorMoments
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.statistics.vectors.statistics import VectorStatistics, joined_blocks

_MANY = 0.06  # warn if a larger share of the rows was clipped to the radius of the grid
# a row to read is clipped to this many standard deviations, so that squares do not overflow
_FAR = 1e100


@takes_n_topics
@dataclass(frozen=True, kw_only=True)
class MixtureOptions(FitOptions):
    """Options of a fit of a Gaussian mixture."""

    topics: int = option(
        "Number of components; auto: as many as are found in both halves of the rows; predict: the "
        "fewest with the best held-out log-likelihood of rows along their directions.",
        check=partial(require_number, of="components"),
        auto=("auto", "predict"),
        also=("components",),
    )
    covariance: str = option(
        "Variances of a component. spherical: one for all coordinates; diag: one for each "
        "coordinate; tied: the same in all components.",
        "spherical",
        require_covariance,
        choices=COVARIANCES,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_joint(self.method, "moments of vectors")

    @property
    def summary(self) -> str:
        """Summary of the fit for logs."""
        return f"{self.topics} components"

    @property
    def label(self) -> str:
        """Label of these options, which becomes part of the name of a model."""
        return f"k{self.topics}-{self.covariance}"


@renamed_fields(
    "0.3.0", "0.4.0", told_apart="n_separable", without="n_missing", drawn_in="n_clipped"
)
@dataclass(frozen=True, eq=False, repr=False)
class GaussianMixture(StoredModel):
    """Components with means and variances, by decreasing weight after the fit.

    Passes keep the order of the components, so after passes the weights need not decrease.

    Parameters
    ----------
    means : (k, d) float64
        Means, in the unit of the rows.
    weights : (k,) float64
        Weights, with sum 1.
    variances : (k, 1) or (k, d) float64
        One variance for all coordinates, or one for each.
    covariance : str
        Which variances a component has: one of `COVARIANCES`.
    spectrum : (k - 1,) float64
        Variance of the component means along each direction in which they differ. The unit is a
        step of the grid or the noise, as in `Signal`.
    n_separable : int
        Number of components that the spectrum of the rows separates.
    n_missing : int
        Number of records that are not numeric.
    n_clipped : int
        Number of rows beyond the radius of the grid, which were clipped to it.
    negative : int
        Number of variances whose estimate was below a thousandth of their mean, and was raised to
        that.
    bars : (k,) float64, optional
        Expected distance of each mean from the true one, estimated from two halves of the rows.
    weight_bars : (k,) float64, optional
        Standard errors of the weights, estimated from the two halves of the rows.
    start : str
        "moments", or "pilot" if passes started from K-means on a random sample of the rows, the
        pilot.
    polishing : Polishing, optional
        How the model was polished, if it was.
    documents, since, until, half_life
        As for any model.

    Examples
    --------
    >>> means, weights = np.array([[0.0, 0.0], [4.0, 0.0]]), np.array([0.75, 0.25])
    >>> model = GaussianMixture(means, weights, np.ones((2, 1)))
    >>> model.assign(np.array([[0.5, 1.0], [3.0, 0.0]]))
    array([0, 1])
    """

    name: ClassVar[str] = "gaussian_mixture"
    of_numbers: ClassVar[bool] = True
    kind: ClassVar[str] = VectorsFoundation.kind
    Options: ClassVar[type[FitOptions]] = MixtureOptions
    compares_halves: ClassVar[bool] = True
    fewest: ClassVar[tuple[int, int]] = (50, 10)
    numbered: ClassVar[str] = "components"
    record: ClassVar[str] = "row"
    holds_out: ClassVar[str] = "rows"
    nulls: ClassVar[tuple[str, ...]] = (*StoredModel.nulls, "polishing")

    means: NDArray[np.float64] = field(metadata=stored_as(states=(0,)))
    weights: NDArray[np.float64] = field(metadata=stored_as(states=(0,)))
    variances: NDArray[np.float64] = field(metadata=stored_as(states=(0,)))
    covariance: str = "spherical"
    _: KW_ONLY
    spectrum: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    n_separable: int = field(default=0, metadata=stored_as(name="told_apart"))
    n_missing: int = field(default=0, metadata=stored_as(name="without"))
    n_clipped: int = field(default=0, metadata=stored_as(name="drawn_in"))
    negative: int = 0
    bars: NDArray[np.float64] | None = field(default=None, metadata=stored_as(states=(0,)))
    weight_bars: NDArray[np.float64] | None = field(default=None, metadata=stored_as(states=(0,)))
    start: str = MOMENTS
    polishing: Polishing | None = field(default=None, metadata=stored_as(required=True))

    @classmethod
    def fit(cls, rows: Rows, options: Any) -> Self:
        """Fit the mixture to statistics.

        Parameters
        ----------
        rows : Rows
            Rows of `VectorStatistics`.
        options : MixtureOptions
            Options of the fit.

        Raises
        ------
        NotIdentifiable
            The statistics identify fewer components than the options ask for; the message says how
            many.
        InvalidInput
            The covariance is "diag", but the statistics have no squares.
        """
        return fit_of_blocks(rows, "components", cls.of_blocks, options)

    @classmethod
    def of_blocks(cls, blocks: Sequence[VectorStatistics], options: Any) -> Self:
        """Fit the mixture to the statistics of all row blocks; raises the same errors as `fit`."""
        whole = joined_blocks(blocks)
        moments = VectorMoments.of(whole)
        n_separable = separable(moments, options.covariance)
        k = options.topics
        found = mixture_components(moments, k, options.covariance)
        grid, totals = moments.grid, whole.totals
        halves = fits_of_halves(whole, lambda half: mixture_components(half, k, options.covariance))
        bars, weight_bars = _bars(found, halves) if halves else (None, None)
        return cls(
            grid.values(found.means),
            found.weights,
            found.variances * grid.step**2,
            options.covariance,
            spectrum=found.spectrum,
            n_separable=n_separable,
            documents=totals.n_documents,
            n_missing=totals.without,
            n_clipped=totals.clipped,
            negative=found.clipped,
            bars=None if bars is None else bars * grid.step,
            weight_bars=weight_bars,
        )

    @classmethod
    def trial(cls, rows: Rows, options: Any) -> Trial:
        """Score the rows of each half under a model that was fitted to the other half.

        Raises the same errors as `fit`.
        """
        return fit_of_blocks(rows, "halves", cls._trial_of_blocks, options)

    @classmethod
    def _trial_of_blocks(cls, blocks: Sequence[VectorStatistics], options: Any) -> Trial:
        whole, k = joined_blocks(blocks), options.topics
        # this call raises an error if the rows separate fewer components
        mixture_components(VectorMoments.of(whole), k, options.covariance)
        held_out = held_out_rows(whole, k - 1, options.covariance.endswith("diag"))
        halves = fits_of_halves(whole, lambda half: mixture_components(half, k, options.covariance))
        if halves is None:
            return Trial(held_out, math.inf)
        even, odd = (one.means for one in halves)
        odd = odd[matched_order(even, odd)]
        bars = np.linalg.norm(even - odd, axis=1) / 2
        return Trial(held_out, furthest_apart(bars, (even + odd) / 2, norm=2))

    @classmethod
    def fit_bytes(cls, foundation: VectorsFoundation, options: Any) -> int:
        """Return the bytes that a fit of any model of vectors needs."""
        return tensor_bytes(foundation)

    @property
    def n_topics(self) -> int:
        """Number of components k."""
        return self.weights.size

    @property
    def n_unsteady(self) -> int:
        """Number of components that are not found in both halves of the rows.

        The mean of such a component differs between the halves by more than half of its distance to
        the nearest other mean. The number is 0 if there are no error bars, and also after passes,
        because these do not read the halves separately.
        """
        if self.bars is None or self.polishing is not None:
            return 0
        return int(not_found_again(self.bars, self.means, norm=2).size)

    @property
    def dimension(self) -> int:
        """Number d of coordinates of a row."""
        return int(self.means.shape[1])

    def transform(
        self, batch: VectorBatch, method: str = "fixed-point", seed: int | None = None
    ) -> NDArray[np.float64]:
        """Return the (N, k) probabilities of the components given each row of numbers."""
        return self.posterior(batch.values)

    def read(self, batch: VectorBatch, method: str = "", seed: int | None = None) -> Columns:
        """Return for each row its most likely component, its log density and its proportions."""
        densities = self.log_densities(batch.values)
        shares, logs = posteriors(densities), log_sums(densities)
        return Columns.of(topic=likeliest(shares), log_likelihood=logs, proportions=shares)

    def log_densities(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return the (n, k) logarithms of `w_j N(x; mu_j, s_j)`, for each row x and component j.

        Parameters
        ----------
        rows : (n, d)
            Finite numbers; those beyond 1e100 standard deviations are clipped.

        Raises
        ------
        ForeignStatistics
            The rows have another number of coordinates than the means.
        """
        return read_by_parts(rows, self.dimension, self._log_densities)

    def _log_densities(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        # subtract the mean of the mixture first, because squares of rows far from the origin would
        # lose precision
        centre = self.weights @ self.means
        x, means = rows.astype(np.float64) - centre, self.means - centre
        most = _FAR * np.sqrt(self.variances.min())
        x *= most / np.maximum(np.abs(x).max(axis=1, keepdims=True), most)
        squares = np.square(x)
        precisions = 1 / self.variances
        if precisions.shape[1] == 1:
            weighed = squares.sum(axis=1, keepdims=True) * precisions[:, 0]
        else:
            weighed = squares @ precisions.T
        distances = weighed - 2 * x @ (means * precisions).T
        distances += (np.square(means) * precisions).sum(axis=1)
        logs = np.log(2 * np.pi * self.variances) * (self.dimension / self.variances.shape[1])
        with np.errstate(divide="ignore"):
            prior = np.log(self.weights)
        return np.asarray(prior - (np.maximum(distances, 0.0) + logs.sum(axis=1)) / 2)

    def posterior(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return (n, k) probabilities of the components, given each row.

        Raises the same errors as `log_densities`.
        """
        return posteriors(self.log_densities(rows))

    def assign(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Return the (n,) index of the most likely component of each row.

        Raises the same errors as `log_densities`.
        """
        return np.asarray(self.log_densities(rows).argmax(axis=1), dtype=np.int64)

    def log_likelihoods(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return the (n,) logarithm of the density of the mixture at each row.

        Raises the same errors as `log_densities`.
        """
        return log_sums(self.log_densities(rows))

    @property
    def n_parameters(self) -> int:
        """Number of free parameters."""
        k, tied = self.n_topics, self.covariance.startswith("tied")
        return int(k * self.dimension + k - 1 + self.variances.shape[1] * (1 if tied else k))

    def sample(self, number: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Draw (number, d) rows from the mixture; return also the component of each row."""
        rng = np.random.default_rng(seed)
        drawn = rng.choice(self.n_topics, number, p=self.weights)
        noise = rng.normal(size=(number, self.dimension))
        return self.means[drawn] + noise * np.sqrt(self.variances[drawn]), drawn

    def plot(
        self,
        number: int = 20,
        names: Sequence[str] | None = None,
        figure: Figure | None = None,
    ) -> list[Axes]:
        """Draw a panel for each component: means and standard deviations of its features.

        Parameters
        ----------
        number : int
            Largest number of features to show: those whose means differ most between components,
            in standard deviations.
        names : sequence of str, optional
            Names of the d features; by default "feature" and a number.
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
        called = names_for(names, self.dimension, "feature")
        if number < 1:
            raise InvalidInput(f"the number of features is {number}; give at least 1")
        deviations = np.sqrt(np.broadcast_to(self.variances, self.means.shape))
        apart = np.std(self.means, axis=0) / np.maximum(self.weights @ deviations, 1e-300)
        shown = np.sort(np.argsort(-apart, kind="stable")[:number])
        titles = [f"component {j} ({share:.0%})" for j, share in enumerate(self.weights)]
        features = [called[feature] for feature in shown]
        return plot_means(titles, features, self.means[:, shown], deviations[:, shown], figure)

    def described(self) -> Description:
        """Describe the weights, spreads and error bars of the components, with warnings."""
        columns = {"weight": self.weights}
        if self.weight_bars is not None:
            columns["weight bar"] = self.weight_bars
        columns["spread"] = np.sqrt(self.variances.mean(axis=1))
        if self.bars is not None:
            columns["error bar"] = self.bars
        facts: dict[str, Any] = {
            "covariance": self.covariance,
            "told_apart": self.n_separable,
            "without": self.n_missing,
            "drawn_in": self.n_clipped,
            "negative": self.negative,
            "components": self.n_topics,
            "dimension": self.dimension,
        }
        k = self.n_topics
        said = [
            f"{of_number(k, 'component')} of {of_number(self.dimension, 'dimension')}, "
            f"{self.covariance} variances"
        ]
        if self.start == PILOT:
            facts["start"] = self.start
            said.append(
                "started from K-means on a pilot of the rows, which makes the rows more likely"
            )
        # the spectrum does not limit the number of components if passes started from a pilot: do
        # not warn then
        separable = k if self.start == PILOT else self.n_separable
        begun = len(said)
        if k > separable:
            said.append(
                f"the spectrum separates {of_number(self.n_separable, 'component')}: the others "
                "are noise, or their means are in the span of others"
            )
        elif k < separable:
            said.append(
                f"the spectrum separates {of_number(self.n_separable, 'component')}, so some "
                "fitted ones hold several of them"
            )
        if self.n_clipped > _MANY * max(1, self.documents - self.n_missing):
            said.append(
                f"{agreeing(self.n_clipped, 'row was', 'rows were')} clipped at the radius, more "
                f"than {_MANY:.0%} of all; rebase the store, or create it from a representative "
                "pilot"
            )
        if self.n_missing:
            said.append(
                agreeing(
                    self.n_missing,
                    "record is not numeric and was skipped",
                    "records are not numeric and were skipped",
                )
            )
        if self.negative:
            said.append(
                f"{agreeing(self.negative, 'variance was', 'variances were')} estimated near 0 or "
                "below: ask for fewer components"
            )
        if self.n_unsteady:
            said.append(self.unsteady_sentence)
        cautions = tuple(said[begun:])
        if self.polishing is not None:
            facts["polishing"] = asdict(self.polishing)
            said.append(self.polishing.sentence)
        return Description(facts, columns, "; ".join(said), cautions=cautions)

    @property
    def unsteady_sentence(self) -> str:
        """Warning about the `n_unsteady` components found in one half only, with a remedy."""
        return (
            f"{self.n_unsteady} of {self.n_topics} components "
            f"{'is' if self.n_unsteady == 1 else 'are'} not found in both halves of the rows, so "
            f"{'it is' if self.n_unsteady == 1 else 'they are'} unreliable: ask for fewer, add "
            "rows, or polish the model"
        )


def separable(moments: VectorMoments, covariance: str) -> int:
    """Return how many components the spectrum of the rows separates from noise."""
    return signal_directions(moments, covariance.endswith("diag")) + 1


def blank_mixture(statistics: VectorStatistics, options: Any) -> GaussianMixture:
    """Return a mixture of equal components at the mean of all rows.

    It has the same numbers of rows and of separable components as a mixture that was fitted.
    """
    moments, totals = VectorMoments.of(statistics), statistics.totals
    grid = moments.grid
    k, d = options.topics, grid.dimension
    width = d if options.covariance.endswith("diag") else 1
    return GaussianMixture(
        np.tile(grid.offset, (k, 1)),
        np.full(k, 1 / k),
        np.full((k, width), grid.step**2),
        options.covariance,
        n_separable=separable(moments, options.covariance),
        documents=totals.n_documents,
        n_missing=totals.without,
        n_clipped=totals.clipped,
    )


def log_sums(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum each row of numbers whose logarithms `logs` (n, k) are given; return the (n,) logarithms.

    Examples
    --------
    >>> np.exp(log_sums(np.log([[0.25, 0.5]]))).round(9)
    array([0.75])
    """
    top = logs.max(axis=1)
    return np.asarray(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)))


def _bars(
    found: Components, halves: tuple[Components, Components]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (k,) error bars of the means, and (k,) error bars of the weights.

    They are half the difference between the fits to the two halves of the rows. For one weight it
    is a single draw of the error, so its square is averaged with a part of the sum over all.
    """
    orders = [matched_order(found.means, half.means) for half in halves]
    pairs = [*zip(halves, orders, strict=True)]
    even, odd = (half.means[order] for half, order in pairs)
    even_weights, odd_weights = (half.weights[order] for half, order in pairs)
    squares = ((even_weights - odd_weights) / 2) ** 2
    of_weights = np.sqrt(pooled(squares, found.weights * (1 - found.weights)))
    return np.linalg.norm(even - odd, axis=1) / 2, of_weights
