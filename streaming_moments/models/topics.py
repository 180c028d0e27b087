"""TopicModel: topics fitted from statistics, and how documents are read with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.evidence import Directions
from streaming_moments.decompositions.forms import Form, form_of
from streaming_moments.decompositions.svtd import recover
from streaming_moments.models import topic_parts
from streaming_moments.models.base import Arrays, Attributes, FitOptions
from streaming_moments.models.halves import (
    STEP,
    HalfRows,
    HeldOut,
    made_there,
    require_halves,
    trusted_there,
)
from streaming_moments.models.inference import inferred_proportions, log_posteriors, posteriors
from streaming_moments.models.predicting import predicting_alpha0_there
from streaming_moments.models.provenance import Polishing, SecondStart
from streaming_moments.models.refinement import (
    TELLING_ROUNDS,
    correlations,
    dirichlet_pair_weights,
    implied_alpha0,
    likelier_there,
    pair_rows,
    pair_topics_of,
)
from streaming_moments.models.rows import Rows
from streaming_moments.models.sweeps import (
    TopicRows,
    both_rows,
    fitted_on,
    mean_columns,
    sweep,
    topic_rows,
)
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.counts.lengths.histogram import Lengths
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.statistics.counts.whitening import Whitening
from streaming_moments.statistics.row_block import interleaved


@dataclass(frozen=True, eq=False)
class TopicModel:
    """Topics of a single-topic model (`alpha0 = 0`) or of latent Dirichlet allocation.

    A fit orders topics by falling weight, so the same statistics give the same numbers;
    `matching.numbered_like` gives them the numbers of an earlier model instead.

    Parameters
    ----------
    topics : (n, k) float64
        Columns on the simplex: probability of each word in each topic.
    weights : (k,) float64
        omega, share of each topic, sums to 1.
    alpha0 : float
        Sum of the Dirichlet parameters; 0 is the single-topic model.
    raw_topics : (n, k) float64
        Topics as they were estimated, before the projection on the simplex.
    word_probabilities : (n,) float64
        M1.
    spectrum, exact_spectrum : (k,) float64
        Eigenvalues of the second moment through the basis, and its own, falling.
    umass, npmi : (k,) float64
        Coherence of each topic; NaN where it was not computed.
    method : str
        Name of the decomposition: "joint", "feature", "power", "svd", "eigen" or "als"; "given"
        for topics given as arrays.
    documents : int
        Documents it was fitted on.
    vocabulary, basis : str
        Fingerprints.
    since, until : str, optional
        First and last day of the documents, ISO 8601, where it was fitted on a window of time.
    half_life : float, optional
        Days after which documents counted half: its statistics were sums of floats, not integers.
    refined : int
        Rounds of refinement by the pairs of words.
    pair_weights : (k, k) float64
        `Omega = E[theta theta']`, share of the pairs of words of a document that are of both
        topics; rows add up to the weights, or to those from before alpha was learned. Where it was
        not refined, that of the Dirichlet.
    polishing : Polishing, optional
        The passes over documents since the fit.
    topic_bars, word_bars : (k,) and (n, k) float64, optional
        L1 error to be expected of each topic, and standard error of each probability, where the
        statistics keep halves of the documents; of a polished model those from before its passes.
    held_out : HeldOut, optional
        How likely the pairs of each half are by topics of the other one; as the bars.
    second_start : SecondStart, optional
        What it gave, where topics repeated.

    Examples
    --------
    >>> half = np.array([[0.5, 0.0], [0.5, 0.0], [0.0, 1.0]])
    >>> model = TopicModel.from_topics(half, np.array([0.6, 0.4]))
    >>> model.assign(CountBatch.from_csr([[2, 1, 0], [0, 0, 3]]))
    array([0, 1])
    """

    name: ClassVar[str] = "topics"
    kind: ClassVar[str] = CountsFoundation.kind
    Options: ClassVar[type[FitOptions]] = TopicOptions
    compares_halves: ClassVar[bool] = True
    arrays = topic_parts.arrays_of
    attributes = topic_parts.attributes_of
    parts = topic_parts.parts_of
    described = topic_parts.description_of
    _repr_html_ = topic_parts.as_html
    pair_topics = pair_topics_of
    require_words = topic_parts.require_words
    smoothed = topic_parts.smoothed
    _as_read = topic_parts.as_read
    stored: ClassVar[tuple[str, ...]] = (
        *("topics", "weights", "raw_topics", "word_probabilities"),
        *("spectrum", "exact_spectrum", "umass", "npmi"),
    )

    topics: NDArray[np.float64]
    weights: NDArray[np.float64]
    alpha0: float
    raw_topics: NDArray[np.float64]
    word_probabilities: NDArray[np.float64]
    spectrum: NDArray[np.float64]
    exact_spectrum: NDArray[np.float64]
    umass: NDArray[np.float64]
    npmi: NDArray[np.float64]
    method: str
    documents: int
    vocabulary: str = ""
    basis: str = ""
    since: str | None = None
    until: str | None = None
    half_life: float | None = None
    refined: int = 0
    pair_weights: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    polishing: Polishing | None = None
    topic_bars: NDArray[np.float64] | None = None
    word_bars: NDArray[np.float64] | None = None
    held_out: HeldOut | None = None
    second_start: SecondStart | None = None

    __sizeof__ = held_bytes

    def __post_init__(self) -> None:
        if not self.pair_weights.size:
            assumed = dirichlet_pair_weights(self.weights, self.alpha0)
            object.__setattr__(self, "pair_weights", assumed)
        for name in (*self.stored, "pair_weights", *topic_parts.bars_known(self)):
            getattr(self, name).setflags(write=False)

    @classmethod
    def from_topics(
        cls, topics: NDArray[np.float64], weights: NDArray[np.float64], alpha0: float = 0.0
    ) -> TopicModel:
        """A model of known (n, k) topics and (k,) weights, such as a synthetic truth."""
        unknown = (np.full(weights.size, np.nan),) * 4
        given = topics.copy(), weights.copy(), alpha0, topics.copy(), topics @ weights
        return cls(*given, *unknown, method="given", documents=0)

    @classmethod
    def fit(cls, rows: Rows, options: Any) -> Self:
        """Topics from all rows, whoever runs the steps: the same bits from the same blocks.

        Parameters
        ----------
        rows : Rows
            Of some statistics.
        options : TopicOptions
            The same as the arguments of `fit_by`, whose errors are raised.
        """
        if options.alpha == "auto":
            require_halves(rows)
        last = both_rows if options.rows == "mean" else topic_rows
        made = cls._made(rows, form_of(options.alpha0), options, last)
        pairs = pair_rows(rows) if options.refine else rows
        halves = HalfRows.of(rows) if rows.halves else None
        made = made_there(made, pairs, options.refine, halves, options.seed)
        return cls._brought_with_alpha(rows, made, halves, options)

    @classmethod
    def _brought_with_alpha(
        cls, rows: Rows, made: Any, halves: HalfRows | None, options: Any
    ) -> Self:
        """The model of a handle, with the alpha that documents are read with."""
        model = cls._brought(rows, made)
        if halves is None or options.alpha != "auto":
            return model
        whole = rows.once(STEP, pair_topics_of, made, rows.basis.core)
        return replace(model, alpha0=predicting_alpha0_there(halves, whole))

    @classmethod
    def fit_bytes(cls, foundation: Any, options: TopicOptions) -> int:
        """(n, k) float64 arrays that the last step of a fit holds at most."""
        # refined: of a second start besides what is left of the first
        mean = options.rows == "mean"
        copies = 11 + mean if options.refine else 9 if mean else 6
        return 8 * copies * int(foundation.rows * options.topics)

    @classmethod
    def of_form(
        cls,
        rows: Rows,
        form: Form,
        options: FitOptions,
        last: Callable[..., TopicRows] = topic_rows,
    ) -> Self:
        """The model of any form, from the `topic_rows` or `both_rows` of the last sweep."""
        return cls._brought(rows, cls._made(rows, form, options, last))

    @classmethod
    def _made(
        cls, rows: Rows, form: Form, options: FitOptions, last: Callable[..., TopicRows]
    ) -> Any:
        """A handle of it."""
        swept = sweep(rows, options.topics, form, options.method, options.seed, last)
        known = rows.lengths, rows.basis, options.method
        return rows.once("finishing", cls.finished, *swept, *known)

    @classmethod
    def _brought(cls, rows: Rows, made: Any) -> Self:
        # of all rows only the model itself comes here, once; made anew, its arrays are read-only
        model: Self = rows.value(made)
        return replace(model)

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
        """The model from the topic rows of all blocks, in their order: a fit's last step."""
        rows = interleaved([rows for rows, _ in parts])
        if rows.shape[1] > whitening.n_topics:
            rows = mean_columns(rows)
        recovered = recover(rows, (directions.vectors.T @ whitening.first) ** 2)
        return cls(
            topics=recovered.topics,
            weights=recovered.weights,
            alpha0=whitening.form.alpha0,
            raw_topics=recovered.raw,
            **fitted_on(whitening, parts, lengths, basis, method),
        )

    def likelier(self, pairs: Rows, rounds: int) -> Self:
        """The model after so many rounds of refinement, topics by falling weight.

        Parameters
        ----------
        pairs : Rows
            The `pair_rows` of the statistics it was fitted on.
        rounds : int
            1 or more.
        """
        return self._brought(pairs, likelier_there(pairs.shared(self), pairs, rounds))

    def trusted(self, halves: HalfRows) -> Self:
        """The model with what halves of the statistics it was fitted on say of it."""
        return self._brought(halves.rows, trusted_there(halves.rows.shared(self), halves))

    @property
    def n_words(self) -> int:
        """Number of words n."""
        return int(self.topics.shape[0])

    @property
    def n_topics(self) -> int:
        """Number of topics k."""
        return int(self.topics.shape[1])

    @property
    def alpha(self) -> NDArray[np.float64]:
        """(k,) Dirichlet parameters, `alpha0 * weights`; zeros for the single-topic model."""
        return self.alpha0 * self.weights

    @property
    def correlations(self) -> NDArray[np.float64]:
        """(k, k) how the shares of two topics go together over documents, -1 to 1."""
        return correlations(self.pair_weights)

    @property
    def implied_alpha0(self) -> float | None:
        """The alpha0 that the pairs imply; None where they do not tell, as in the first rounds."""
        return implied_alpha0(self.pair_weights) if self.refined >= TELLING_ROUNDS else None

    @property
    def captured(self) -> float:
        """Smallest share of an eigenvalue that the basis sees; near 1 is good."""
        return float((self.spectrum / self.exact_spectrum).min())

    @classmethod
    def from_parts(cls, arrays: Arrays, attributes: Attributes) -> Self:
        """The model of `arrays()` and `attributes()`.

        Raises
        ------
        InvalidInput
            A part is missing: names it.
        """
        return cls(**topic_parts.fields_given(cls.stored, arrays, attributes))

    def with_coherence(self, umass: NDArray[np.float64], npmi: NDArray[np.float64]) -> Self:
        """The model with the (k,) coherences of its topics."""
        return replace(self, umass=umass.copy(), npmi=npmi.copy())

    def reordered(self, order: NDArray[np.int64]) -> Self:
        """The model with topic `order[j]` as topic j; errors as `topic_parts.reordered_fields`."""
        return replace(self, **topic_parts.reordered_fields(self, order))

    def assign(self, batch: CountBatch, smoothing: float = 1e-3) -> NDArray[np.int64]:
        """Most probable topic of each document: `argmax_j omega_j prod_i m_ij^x_i` (Remark 1).

        Parameters
        ----------
        batch : CountBatch
            (documents, n) counts on the model's vocabulary.
        smoothing : float
            Share of M1 mixed into each topic, so that no single word rules a topic out.

        Returns
        -------
        (documents,) int64
            Topics; an empty document gets the one of largest weight.

        Raises
        ------
        ForeignStatistics
            The batch counts another vocabulary.
        """
        return np.asarray(self._log_posterior(batch, smoothing).argmax(axis=1), dtype=np.int64)

    def transform(
        self,
        batch: CountBatch,
        method: Literal["fixed-point", "gibbs"] = "fixed-point",
        seed: int | None = None,
        iterations: int = 100,
        smoothing: float = 1e-3,
    ) -> NDArray[np.float64]:
        """Topic proportions of each document.

        For `alpha0 = 0` the posterior probability of each topic. Else, for LDA: "fixed-point"
        iterates `theta_j <- (alpha_j + sum_i x_i theta_j m_ij / (theta . m_i)) / (alpha0 + c)`,
        which is expectation maximisation of a concave function, so the limit does not depend on
        the start; "gibbs" averages the collapsed Gibbs sampler of Remark 4 over the second half
        of its iterations.

        Parameters
        ----------
        batch : CountBatch
            (documents, n) counts on the model's vocabulary.
        method : {"fixed-point", "gibbs"}
            For LDA.
        seed : int, optional
            Needed by "gibbs".
        iterations : int
            At most so many of the fixed point, exactly so many of the sampler.
        smoothing : float
            Share of M1 mixed into each topic.

        Returns
        -------
        (documents, k) float64
            Rows on the simplex; an empty document gets the weights.

        Raises
        ------
        ForeignStatistics
            The batch counts another vocabulary.
        InvalidInput
            An unknown method, "gibbs" without a seed or with fewer than 2 iterations.
        """
        if not self.alpha0:
            return posteriors(self._log_posterior(batch, smoothing))
        batch, topics = self._as_read(batch, smoothing)
        known = topics, self.weights, self.alpha0
        return inferred_proportions(batch, *known, method, seed, iterations)

    def _log_posterior(self, batch: CountBatch, smoothing: float) -> NDArray[np.float64]:
        return log_posteriors(*self._as_read(batch, smoothing), self.weights)
