"""TopicModel: topics that were fitted to statistics, and inference of documents with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Column, Columns, DataFrame, Table
from streaming_moments.decompositions.evidence import Directions
from streaming_moments.decompositions.forms import Form, form_of
from streaming_moments.decompositions.methods import decomposition_called
from streaming_moments.decompositions.svtd import recover
from streaming_moments.errors import ForeignStatistics, InvalidInput, short
from streaming_moments.models.alpha0 import (
    AUTO,
    Alpha0Search,
    Alpha0Trial,
    search_alpha0,
    with_alpha0_search,
)
from streaming_moments.models.base import Arrays, Attributes, Description, FitOptions
from streaming_moments.models.halves import (
    START_ALPHA,
    STEP,
    HalfRows,
    HeldOut,
    pairs_and_halves,
    require_halves,
    trusted_there,
)
from streaming_moments.models.numbers.number_search import DOCUMENTS_EACH
from streaming_moments.models.provenance import Polishing, SecondStart
from streaming_moments.models.reading.inference import (
    completing_alpha,
    inferred_proportions,
    log_posteriors,
    posteriors,
    said_by_words,
)
from streaming_moments.models.refinement import (
    TELLING_ROUNDS,
    correlations,
    dirichlet_pair_weights,
    implied_alpha0,
    likelier_there,
    pair_topics_of,
)
from streaming_moments.models.rows import Rows
from streaming_moments.models.second_start import made_there
from streaming_moments.models.stored import StoredModel, stored_as
from streaming_moments.models.sweeps import (
    TopicRows,
    both_rows,
    fitted_on,
    mean_columns,
    seen_by,
    sweep,
    topic_rows,
)
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.numerics.relevance import telling_words
from streaming_moments.plots import Axes, Figure, plot_words
from streaming_moments.printing.plural import of_number
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch, require_batch
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.counts.lengths.histogram import Lengths
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.statistics.counts.whitening import Whitening
from streaming_moments.statistics.row_block import interleaved

# default share of the mean distribution of words in the topics with which documents are read
_SMOOTHING = 1e-3
# A batch is small if it has fewer entries than the number of words of the model, divided by this.
# Then only those rows of the topics are smoothed whose words occur in the batch.
_FEW = 4
# Fields of the model that are the first columns of frames and tables, in this order. The values are
# the names that these columns have in `Topics`.
_COLUMNS = MappingProxyType(
    {"weights": "share", "topic_bars": "bar", "npmi": "npmi", "umass": "umass"}
)


@dataclass(frozen=True, eq=False, repr=False)
class TopicModel(StoredModel):
    """Topics of a single-topic model (`alpha0 = 0`) or of latent Dirichlet allocation.

    A fit orders topics by decreasing weight, so the same statistics give the same numbers;
    `matching.numbered_like` gives topics the numbers that they have in an earlier model.

    Parameters
    ----------
    topics : (n, k) float64
        Probability of each word in each topic; columns sum to 1.
    weights : (k,) float64
        omega, share of each topic, with sum 1.
    alpha_sum : float
        Sum of the Dirichlet parameters for reading documents; 0 is the single-topic model. It can
        differ from `alpha0`, the sum that was assumed when the topics were fitted.
    raw_topics : (n, k) float64
        Estimated topics before the projection on the simplex; entries can be negative.
    word_probabilities : (n,) float64
        M1, the probability of each word in all documents.
    spectrum, exact_spectrum : (k,) float64
        Eigenvalues of the second moment as seen through the basis, and of the exact second moment;
        both decreasing.
    umass, npmi : (k,) float64
        Coherence of each topic; NaN if not computed.
    method : str
        Name of the decomposition: "joint", "feature", "power", "svd", "eigen" or "als"; "given"
        for topics given as arrays.
    vocabulary, basis : str
        Fingerprints of the vocabulary and the basis.
    refined : int
        Number of rounds that refined the topics by the counts of word pairs.
    pair_weights : (k, k) float64
        `Omega = E[theta theta']`, topic co-occurrence matrix: for each two topics, the share of the
        word pairs of a document whose words have these topics. Rows sum to the weights, or to the
        weights before passes learned alpha. Without refinement, the matrix is that of the Dirichlet
        distribution.
    polishing : Polishing, optional
        Record of the passes over documents after the fit.
    topic_bars, word_bars : (k,) and (n, k) float64, optional
        Expected L1 error of each topic, and standard error of the probability of each word in it,
        if the statistics have halves of the documents. A polished model has the error bars from
        before its passes.
    held_out : HeldOut, optional
        Log-likelihood of the word pairs of each half of the documents under topics of the other
        half, if the error bars are known.
    second_start : SecondStart, optional
        Record of a second start, which a fit makes if some topics are near-duplicates.
    alpha0_search : Alpha0Search, optional
        Search for alpha0, if the options gave no alpha0.
    given_alpha0 : float, optional
        alpha0 that was given for the fit, if the sum of alpha was estimated.
    coherences : mapping of str to (k,) float64
        Other coherences of each topic than UMass and NPMI, by key, if computed.
    documents, since, until, half_life
        As for any model.

    Examples
    --------
    >>> half = np.array([[0.5, 0.0], [0.5, 0.0], [0.0, 1.0]])
    >>> model = TopicModel.from_topics(half, np.array([0.6, 0.4]))
    >>> model.assign(CountBatch.from_csr([[2, 1, 0], [0, 0, 3]]))
    array([0, 1])
    """

    name: ClassVar[str] = "topics"
    record: ClassVar[str] = "document"
    kind: ClassVar[str] = CountsFoundation.kind
    Options: ClassVar[type[FitOptions]] = TopicOptions
    compares_halves: ClassVar[bool] = True
    finds_topics: ClassVar[bool] = True
    holds_out: ClassVar[str] = "pairs"
    fewest: ClassVar[tuple[int, int]] = (100, DOCUMENTS_EACH)
    nulls: ClassVar[tuple[str, ...]] = ()
    halves_give: ClassVar[str] = "topic_bars"
    pair_topics = pair_topics_of

    topics: NDArray[np.float64] = field(metadata=stored_as(states=(1,)))
    weights: NDArray[np.float64] = field(metadata=stored_as(states=(0,)))
    # the name of this field in stores of all versions is "alpha0"
    alpha_sum: float = field(metadata=stored_as(name="alpha0"))
    raw_topics: NDArray[np.float64] = field(metadata=stored_as(states=(1,)))
    word_probabilities: NDArray[np.float64]
    spectrum: NDArray[np.float64]
    exact_spectrum: NDArray[np.float64]
    umass: NDArray[np.float64] = field(metadata=stored_as(states=(0,)))
    npmi: NDArray[np.float64] = field(metadata=stored_as(states=(0,)))
    _: KW_ONLY
    # the name of this field in stores of all versions is "rotation"
    method: str = field(metadata=stored_as(name="rotation"))
    vocabulary: str = ""
    basis: str = ""
    refined: int = field(default=0, metadata=stored_as(together="refined"))
    pair_weights: NDArray[np.float64] = field(
        default_factory=lambda: np.empty((0, 0)),
        metadata=stored_as(states=(0, 1), together="refined"),
    )
    polishing: Polishing | None = None
    topic_bars: NDArray[np.float64] | None = field(
        default=None, metadata=stored_as(states=(0,), together="bars")
    )
    word_bars: NDArray[np.float64] | None = field(
        default=None, metadata=stored_as(states=(1,), together="bars")
    )
    held_out: HeldOut | None = None
    second_start: SecondStart | None = None
    alpha0_search: Alpha0Search | None = None
    given_alpha0: float | None = None
    coherences: Mapping[str, NDArray[np.float64]] = field(
        default_factory=dict, metadata=stored_as(prefix="coherence_", states=(0,))
    )

    def __post_init__(self) -> None:
        if not self.pair_weights.size:
            assumed = dirichlet_pair_weights(self.weights, self.alpha_sum)
            object.__setattr__(self, "pair_weights", assumed)
        super().__post_init__()

    @classmethod
    def from_topics(
        cls, topics: NDArray[np.float64], weights: NDArray[np.float64], alpha0: float = 0.0
    ) -> TopicModel:
        """Make a model of known (n, k) topics and (k,) weights, such as those of synthetic data."""
        unknown = (np.full(weights.size, np.nan),) * 4
        return cls(
            topics.copy(),
            weights.copy(),
            alpha0,
            topics.copy(),
            topics @ weights,
            *unknown,
            method="given",
            documents=0,
        )

    @classmethod
    def fit(cls, rows: Rows, options: Any) -> Self:
        """Fit topics to all rows; the same blocks give the same bits on any workers.

        Parameters
        ----------
        rows : Rows
            Rows of statistics of documents.
        options : TopicOptions
            Options with the meaning of the arguments of `fit_by`; the errors are also the same.
        """
        if options.alpha == "auto":
            require_halves(rows)
        last = both_rows if options.rows == "mean" else topic_rows
        searched = options.alpha0 == AUTO
        pairs, halves = pairs_and_halves(rows, options.refine)
        search, trials, seen = Alpha0Search(), tuple[Alpha0Trial, ...](), None
        if searched and halves is not None:
            seen = seen_by(rows)
            search, trials = search_alpha0(rows, seen, options)
        alpha0 = search.alpha0 if searched else options.alpha0
        made = cls._made(rows, form_of(alpha0), options, last, seen)
        near = trials[0].alpha if trials else START_ALPHA if options.alpha == "auto" else None
        made = made_there(made, pairs, options.refine, halves, options.seed, near)
        if near is not None:
            made = rows.once(STEP, cls._completing, made, rows.lengths)
        if searched:
            made = rows.once(STEP, with_alpha0_search, made, search, *trials)
        return cls._brought(rows, made)

    def _completing(self, lengths: RowLengths[Lengths]) -> Self:
        """Return the model with the sum of alpha by which documents of these lengths are read best.

        See `completing_alpha`.
        """
        topics = self.smoothed(_SMOOTHING)
        alpha = completing_alpha(topics, self.weights, self.alpha_sum, lengths.whole)
        return self.with_alpha_sum(alpha)

    def with_alpha_sum(self, alpha_sum: float) -> Self:
        """Return a model that reads documents with this sum of alpha; `alpha0` stays the same."""
        given = self.alpha0 if self.alpha0_search is None else None
        return replace(self, alpha_sum=alpha_sum, given_alpha0=given)

    @classmethod
    def likeliest_alpha0(cls, rows: Rows, options: TopicOptions) -> Alpha0Search:
        """Search for alpha0 with these options; an alpha0 in the options is ignored.

        Parameters
        ----------
        rows : Rows
            Rows of statistics of documents; if these have no halves, no value is tried.
        options : TopicOptions
            As for `fit`.
        """
        return search_alpha0(rows, seen_by(rows), options)[0] if rows.halves else Alpha0Search()

    @classmethod
    def fit_bytes(cls, foundation: Any, options: TopicOptions) -> int:
        """Return the bytes that a fit needs: those of the (n, k) arrays in its last step."""
        # a fit with refinement holds arrays of a second start and those of the first start
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
        """Fit topics with any `form` of the moments; `last` is the function of the last sweep."""
        return cls._brought(rows, cls._made(rows, form, options, last))

    @classmethod
    def _made(
        cls,
        rows: Rows,
        form: Form,
        options: FitOptions,
        last: Callable[..., TopicRows],
        seen: Any = None,
    ) -> Any:
        """Fit the model on workers, and return a handle of it."""
        swept = sweep(rows, options.topics, form, options.method, options.seed, last, seen)
        method = decomposition_called(options.method).name
        return rows.once("finishing", cls.finished, *swept, rows.lengths, rows.basis, method)

    @classmethod
    def _brought(cls, rows: Rows, made: Any) -> Self:
        # copy to this process only the finished model, and only once
        model: Self = rows.value(made)
        return model

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
        """Make the model, which is the last step of a fit, from the topic rows of all blocks."""
        rows = interleaved([rows for rows, _ in parts])
        if rows.shape[1] > whitening.n_topics:
            rows = mean_columns(rows)
        recovered = recover(rows, (directions.vectors.T @ whitening.first) ** 2)
        return cls(
            topics=recovered.topics,
            weights=recovered.weights,
            alpha_sum=whitening.form.alpha0,
            raw_topics=recovered.raw,
            **fitted_on(whitening, parts, lengths, basis, method),
        )

    def top_words(
        self, number: int = 10, by: Literal["relevance", "probability", "lift"] = "relevance"
    ) -> NDArray[np.int64]:
        """Return the most descriptive words of each topic, best first.

        Parameters
        ----------
        number : int
            Number of words.
        by : {"relevance", "probability", "lift"}
            "probability" is the probability of a word in the topic, "lift" the ratio of this to the
            probability in all documents. "relevance" adds the logarithms of both, with weights 0.6
            and 0.4 (Sievert and Shirley 2014).

        Returns
        -------
        (k, number) int64
            Indices of words; fewer columns if the vocabulary is smaller.

        Raises
        ------
        InvalidInput
            The number is below 1, or the ranking is unknown.

        Examples
        --------
        >>> topics = np.array([[0.55, 0.5], [0.45, 0.0], [0.0, 0.5]])
        >>> TopicModel.from_topics(topics, np.array([0.5, 0.5])).top_words(1).tolist()
        [[1], [2]]
        """
        return telling_words(self.topics, self.word_probabilities, number, by)

    def plot(
        self,
        number: int = 8,
        names: Sequence[str] | None = None,
        figure: Figure | None = None,
        labels: Sequence[str] = (),
    ) -> list[Axes]:
        """Draw a panel for each topic: its top words, their probabilities and error bars.

        Parameters
        ----------
        number : int
            Number of words of each topic.
        names : sequence of str, optional
            Words of the vocabulary, such as `vocabulary.terms` of `from_gensim`; by default "word"
            and a number.
        figure : matplotlib.figure.Figure, optional
            Figure to draw on; by default a new one of pyplot.
        labels : sequence of str, optional
            Labels of the topics for the titles of the panels.

        Returns
        -------
        list of matplotlib.axes.Axes
            The panels.

        Raises
        ------
        InvalidInput
            The number of names differs from the words of the model, `number` is below 1, or the
            figure is not one of matplotlib.
        ModuleNotFoundError
            matplotlib is not installed; the message has the command that installs it.
        """
        called = [f"word {word}" for word in range(self.n_words)] if names is None else names
        self._require_names(called)
        chosen = self.top_words(number)
        titles = [
            " ".join(filter(None, (str(topic), label, f"({share:.0%})")))
            for topic, label, share in zip(
                range(self.n_topics), labels or [""] * self.n_topics, self.weights, strict=True
            )
        ]
        words = [[str(called[word]) for word in row] for row in chosen]
        heights = [self.topics[row, topic] for topic, row in enumerate(chosen)]
        bars = self.word_bars
        errors = None if bars is None else [bars[row, topic] for topic, row in enumerate(chosen)]
        return plot_words(titles, words, heights, errors, figure)

    def likelier(self, pairs: Rows, rounds: int) -> Self:
        """Refine the topics by more rounds, and order them by decreasing weight.

        Parameters
        ----------
        pairs : Rows
            Counts of word pairs, made by `pair_rows` from the statistics to which the model was
            fitted.
        rounds : int
            Number of rounds, at least 1.
        """
        return self._brought(pairs, likelier_there(pairs.shared(self), pairs, rounds))

    def trusted(self, halves: HalfRows) -> Self:
        """Add error bars and held-out likelihood, from the halves of the fitted statistics."""
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
        """(k,) Dirichlet parameters, `alpha_sum * weights`; zeros for the single-topic model."""
        return self.alpha_sum * self.weights

    @property
    def alpha0(self) -> float:
        """Sum of the Dirichlet parameters that the fit assumed, given or found by a search."""
        if self.alpha0_search is not None:
            return self.alpha0_search.alpha0
        return self.alpha_sum if self.given_alpha0 is None else self.given_alpha0

    @property
    def correlations(self) -> NDArray[np.float64]:
        """(k, k) correlations, over documents, of the shares of two topics; from -1 to 1."""
        return correlations(self.pair_weights)

    @property
    def implied_alpha0(self) -> float | None:
        """alpha0 that the counts of word pairs imply.

        None if they do not show it, for example because the topics were refined in few rounds.
        """
        return implied_alpha0(self.pair_weights) if self.refined >= TELLING_ROUNDS else None

    @property
    def captured(self) -> float:
        """Smallest share of an eigenvalue of the moments that the basis captures; 1 is best."""
        return float((self.spectrum / self.exact_spectrum).min())

    @property
    def scored(self) -> NDArray[np.float64]:
        """The topics."""
        return self.topics

    @property
    def mean_coherences(self) -> dict[str, float | None]:
        """Mean NPMI of the topics, and other coherences; None if not computed."""
        known = {"npmi": self.npmi, **self.coherences}
        means = ((key, float(one.mean())) for key, one in known.items())
        return {key: mean if np.isfinite(mean) else None for key, mean in means}

    @property
    def captured_share(self) -> float | None:
        """`captured`, if known."""
        return self.captured if np.isfinite(self.captured) else None

    @property
    def moments(self) -> tuple[int, float]:
        """Number of topics, and alpha0."""
        return self.n_topics, self.alpha0

    def summary(self) -> dict[str, Any]:
        """Return numbers about topics, decomposition, coherence and captured spectrum, by name."""
        told: dict[str, Any] = {"topics": self.n_topics, "alpha0": self.alpha0}
        told |= {"alpha_sum": self.alpha_sum, "method": self.method}
        return {**told, **self.mean_coherences, "captured": self.captured}

    def parts(self) -> tuple[Arrays, Attributes]:
        """Return the arrays and attributes to store; `from_parts` makes the model from them."""
        arrays, attributes = super().parts()
        if self.refined:
            return arrays, attributes
        # without refinement, leave out the pair weights: they are those of the Dirichlet
        # distribution, which the weights determine
        left = {"refined", "pair_weights"}
        kept = {name: array for name, array in arrays.items() if name not in left}
        return kept, {name: value for name, value in attributes.items() if name not in left}

    def arrays(self) -> Arrays:
        """Return the arrays to store, as `parts` does."""
        return self.parts()[0]

    def attributes(self) -> Attributes:
        """Return the attributes to store, as `parts` does."""
        return self.parts()[1]

    def to_frame(self, names: Sequence[str] | None = None, number: int = 10) -> DataFrame:
        """Return a pandas frame with a row for each topic, as `to_table` does.

        Its index is called `topic`.

        Parameters
        ----------
        names : sequence of str, optional
            Words of the vocabulary, such as `vocabulary.terms` of `from_gensim`. The frame then
            has a column `words`.
        number : int
            Number of words of each topic.

        Raises
        ------
        InvalidInput
            `names` has not one name for each word of the model, or `number` is below 1.
        ModuleNotFoundError
            pandas is not installed; the message has the command that installs it.

        Examples
        --------
        >>> topics = np.array([[0.55, 0.5], [0.45, 0.0], [0.0, 0.5]])
        >>> model = TopicModel.from_topics(topics, np.array([0.5, 0.5]))
        >>> model.to_frame(["law", "tax", "sea"], 1).words.tolist()
        ['tax', 'sea']
        """
        return self._with_words(names, number).to_frame("topic")

    def to_table(self, names: Sequence[str] | None = None, number: int = 10) -> Table:
        """Return an Arrow table with a row for each topic: share, error bar, coherences and words.

        Parameters and errors are those of `to_frame`.
        """
        return self._with_words(names, number).to_table()

    def _with_words(self, names: Sequence[str] | None, number: int) -> Columns:
        own = {_COLUMNS.get(name, name): one for name, one in self.per_state.items()}
        ordered = {name: own.pop(name) for name in _COLUMNS.values() if name in own} | own
        if names is None:
            return Columns(ordered)
        self._require_names(names)
        told = (" ".join(str(names[word]) for word in row) for row in self.top_words(number))
        return Columns({**ordered, "words": Column.of_values(told)})

    def _require_names(self, names: Sequence[str]) -> None:
        """Raise InvalidInput unless each word of the model has a name."""
        if len(names) != self.n_words:
            raise InvalidInput(
                f"{of_number(len(names), 'name')} given for {of_number(self.n_words, 'word')}; "
                "give a name for each word of the model"
            )

    @property
    def shown_values(self) -> dict[str, NDArray[np.float64]]:
        """Values of the topics in the table that notebooks show: shares, coherences and others.

        The others are the columns of `described`.
        """
        scores = {"NPMI": self.npmi, **self.coherences}
        return {"share": self.weights, **scores, **super().shown_values}

    @property
    def rough_sentence(self) -> str:
        """Warning about refined topics whose error bar is above 1, with a remedy; empty if none."""
        bars = self.topic_bars
        rough = 0 if bars is None or not self.refined else int((bars > 1).sum())
        if not rough:
            return ""
        return (
            f"{rough} of {of_number(self.n_topics, 'topic')} {'has' if rough == 1 else 'have'} an "
            "error bar above 1, so half of the probability may be on the wrong words: fit fewer "
            "topics, or count more documents"
        )

    def described(self) -> Description:
        """Describe the topics: shares, error bars, refinement, held-out score and polishing."""
        names = ("n_topics", "alpha0", "alpha_sum", "method", "captured")
        facts = {name: getattr(self, name) for name in names}
        facts["alpha"] = self.alpha.tolist()
        sentence = f"captured spectrum {self.captured:.2f}"
        sentence += f"; alpha0 {self.alpha0:g}" if self.alpha0 and not self.alpha0_search else ""
        if self.alpha0_search is not None:
            sentence += f"; {self.alpha0_search.sentence}"
            facts["alpha0_search"] = asdict(self.alpha0_search)
        if self.alpha_sum != self.alpha0:
            sentence += f"; documents are read with an alpha whose sum is {self.alpha_sum:g}"
        if self.refined:
            facts |= {"refined": self.refined, "correlations": self.correlations.tolist()}
            facts["implied_alpha0"] = self.implied_alpha0
            sentence += f"; refined in {of_number(self.refined, 'round')} by word pairs"
            # Do not show the implied alpha0 if a search found an alpha0. A few rounds of refinement
            # hardly change the pair weights, so the two numbers would contradict each other.
            if self.implied_alpha0 is not None and self.alpha0_search is None:
                sentence += f", which imply alpha0 {self.implied_alpha0:.3g}"
        columns = {} if self.topic_bars is None else {"error bar": self.topic_bars}
        cautions = []
        if columns and not self.refined:
            cautions.append("error bars assume refined topics and can be twice too long here")
            sentence += f"; {cautions[0]}"
        if self.held_out is not None:
            facts["held_out"] = asdict(self.held_out) | {"mean": self.held_out.mean}
            had = "" if self.polishing is None else " before polishing"
            sentence += f"; held-out log-likelihood {self.held_out.mean:.4f} per word pair{had}"
        if self.second_start is not None:
            facts["second_start"] = asdict(self.second_start) | {"kept": self.second_start.kept}
            sentence += f"; {self.second_start.sentence}"
        if self.polishing is not None:
            facts["polishing"] = asdict(self.polishing)
            sentence += f"; {self.polishing.sentence}"
            if columns:
                facts["error_bars_of"] = "the fit before it was polished"
                sentence += "; error bars are of the fit before that"
        return Description(facts, columns, sentence, cautions=tuple(cautions))

    def with_coherence(
        self,
        umass: NDArray[np.float64],
        npmi: NDArray[np.float64],
        **others: NDArray[np.float64],
    ) -> Self:
        """Return the model with these (k,) coherences; `others` are further ones, by key."""
        known = {key: values.copy() for key, values in others.items()}
        return replace(self, umass=umass.copy(), npmi=npmi.copy(), coherences=known)

    def without_coherence(self) -> Self:
        """Return the model without coherences."""
        nothing = np.full(self.n_topics, np.nan)
        return self.with_coherence(nothing, nothing)

    def assign(self, batch: CountBatch, smoothing: float = _SMOOTHING) -> NDArray[np.int64]:
        """Return the most probable topic of each document: `argmax_j omega_j prod_i m_ij^x_i`.

        See Ruffini et al. (2018), Remark 1.

        Parameters
        ----------
        batch : CountBatch
            (documents, n) counts on the model's vocabulary.
        smoothing : float
            Share of the mean distribution of words that is mixed into each topic, so that no single
            word excludes a topic.

        Returns
        -------
        (documents,) int64
            Index of the topic; an empty document gets the topic with the largest weight.

        Raises
        ------
        ForeignStatistics
            The batch has another vocabulary.
        """
        return np.asarray(self._log_posterior(batch, smoothing).argmax(axis=1), dtype=np.int64)

    def transform(
        self,
        batch: CountBatch,
        method: Literal["fixed-point", "gibbs"] = "fixed-point",
        seed: int | None = None,
        iterations: int = 100,
        smoothing: float = _SMOOTHING,
    ) -> NDArray[np.float64]:
        """Infer the topic proportions of each document.

        If `alpha_sum` is 0, the proportions are the posterior probabilities of the topics. For LDA,
        "fixed-point" iterates
        `theta_j <- (alpha_j + sum_i x_i theta_j m_ij / (theta . m_i)) / (alpha_sum + c)`,
        where x are the word counts of a document of c tokens, and m the topics. This is expectation
        maximisation of a concave function, so the limit does not depend on the start. "gibbs"
        averages the collapsed Gibbs sampler of Ruffini et al. (2018), Remark 4, over the second
        half of its iterations.

        Parameters
        ----------
        batch : CountBatch
            (documents, n) counts on the model's vocabulary.
        method : {"fixed-point", "gibbs"}
            How to infer proportions under LDA.
        seed : int, optional
            Seed, which "gibbs" needs.
        iterations : int
            Largest number of iterations of the fixed point; exact number for the sampler.
        smoothing : float
            Share of the mean distribution of words that is mixed into each topic.

        Returns
        -------
        (documents, k) float64
            Proportions, which sum to 1 in each row; an empty document gets the weights of the
            topics.

        Raises
        ------
        ForeignStatistics
            The batch has another vocabulary.
        InvalidInput
            The method is unknown, or "gibbs" has no seed or fewer than 2 iterations.
        """
        if not self.alpha_sum:
            return posteriors(self._log_posterior(batch, smoothing))
        batch, topics = self._as_read(batch, smoothing)
        return inferred_proportions(
            batch, topics, self.weights, self.alpha_sum, method, seed, iterations
        )

    def read(
        self, batch: CountBatch, method: Any = "fixed-point", seed: int | None = None
    ) -> Columns:
        """Return the number of known words, the topic and the proportions of each document.

        See `transform` for the arguments.
        """
        return said_by_words(self.transform(batch, method, seed), batch.lengths)

    def _log_posterior(self, batch: CountBatch, smoothing: float) -> NDArray[np.float64]:
        return log_posteriors(*self._as_read(batch, smoothing), self.weights)

    def require_words(self, batch: CountBatch) -> None:
        """Refuse documents that have another vocabulary than the model.

        Raises
        ------
        ForeignStatistics
            The vocabularies differ; the message names both.
        """
        require_batch(batch)
        if (batch.n_words, batch.vocabulary) != (self.n_words, self.vocabulary):
            raise ForeignStatistics(
                f"the model has vocabulary {short(self.vocabulary)} ({self.n_words} words), but "
                f"the documents have {short(batch.vocabulary)} ({batch.n_words} words); count them "
                "with the model's vocabulary"
            )

    def smoothed(
        self, smoothing: float, words: NDArray[np.int32] | slice = slice(None)
    ) -> NDArray[np.float64]:
        """Mix a share of M1 into the (n, k) topics, so that all entries are positive.

        Returns only the rows of `words`. M1 is the mean distribution of words.
        """
        if not 0 < smoothing < 1:
            raise InvalidInput(f"smoothing is {smoothing}; it must be between 0 and 1")
        # a word that never occurred has a mean of 0: this floor makes its logarithm finite
        mean = np.maximum(self.word_probabilities[words], 1e-12)
        return np.asarray((1 - smoothing) * self.topics[words] + smoothing * mean[:, None])

    def _as_read(
        self, batch: CountBatch, smoothing: float
    ) -> tuple[CountBatch, NDArray[np.float64]]:
        """Return a batch and smoothed topics by which to read it.

        If the batch has few words, these are only the rows of the topics for its words, and the
        batch numbers its words like these rows. Results have the same bits either way, because a
        document uses only the rows of its words.
        """
        self.require_words(batch)
        if _FEW * batch.words.size >= self.n_words:
            return batch, self.smoothed(smoothing)
        used, places = np.unique(batch.words, return_inverse=True)
        narrow = CountBatch(batch.indptr, places.astype(np.int32), batch.counts, max(1, used.size))
        rows = self.smoothed(smoothing, used) if used.size else np.ones((1, self.n_topics))
        return narrow, rows
