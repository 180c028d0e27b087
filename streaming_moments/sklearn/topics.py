"""MomentTopics: topics of a matrix of word counts, as an estimator."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, check_non_negative

from streaming_moments.arguments import require_fitting
from streaming_moments.columns import DataFrame, Table
from streaming_moments.decompositions.methods import decomposition_called
from streaming_moments.decompositions.moments import require_topics
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.models.fit import fit_reported, search_topics
from streaming_moments.models.refinement import ROUNDS
from streaming_moments.models.stored import too_few_line
from streaming_moments.models.topics import TopicModel
from streaming_moments.plots import Axes, Figure
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.short_repr import shown
from streaming_moments.quality.coherences.registry import with_coherence
from streaming_moments.quality.prediction import completion_perplexity
from streaming_moments.quality.topic_plots import plot_topic_map
from streaming_moments.sklearn.estimator import MomentTransformer, RandomSeed
from streaming_moments.sklearn.sparse_input import SparseInput, held_values, holds_texts, is_sparse
from streaming_moments.statistics.counts.basis import DEFAULT_CORE, Basis
from streaming_moments.statistics.counts.batch import CountBatch, documents_repeated
from streaming_moments.statistics.counts.lengths.weights import Weighting
from streaming_moments.statistics.counts.statistics import MomentStatistics

_DTYPES = [np.float64, np.float32, np.int64, np.int32]
_LEAST = 2  # a fit needs at least this many documents, and at least this many words
_MOST = 32  # the basis has room for at most this many topics if the fit chooses their number
_PARTS = 100  # fractional counts are multiplied by this number and rounded


class MomentTopics(SparseInput, MomentTransformer):
    """Topics of a matrix of word counts, from exact additive statistics.

    `X` is (documents, n) array_like or sparse, of whole numbers of at least 0. `partial_fit`
    chooses the basis from its first documents only.

    Parameters
    ----------
    n_components : int, "auto" or "predict"
        Number of topics k; "auto" and "predict" choose it as in `fit_by`.
    alpha0 : float or "auto"
        Sum of the Dirichlet parameters; 0 is one topic per document. "auto" chooses the value with
        the best held-out log-likelihood.
    method : str
        Decomposition, as in `fit_by`.
    refine : int or "auto"
        Number of rounds of refinement; "auto" chooses it as in `fit_by`.
    alpha : {"given", "auto"}
        Dirichlet prior with which the topics of documents are inferred, as in `fit_by`.
    polish : int or "auto"
        Number of passes over the documents after the fit, as in `polished`, with all threads. Only
        `fit` makes them, as `partial_fit` and `+` do not have all documents.
    max_components : int, optional
        Largest number of topics that can be requested after `partial_fit`. The default is
        `n_components`, or 32 if that is "auto" or "predict".
    length_weights : {"even", "pooled"}
        "even" down-weights long documents, as in `Basis.from_pilot`.
    random_state : int, RandomState or None
        Seed of the random directions of the basis and of some methods.
    keep_statistics : bool
        Whether a pickle after `fit` includes `statistics_`, so that documents can be added later;
        after `partial_fit` it always does.
    verbose : int
        1 prints a line for each step of a fit, with its seconds; 0 prints none.

    Attributes
    ----------
    components_ : (k, n_features_in_) float64
        Topics: probability of each word, rows with sum 1.
    weights_ : (k,) float64
        Share of each topic, decreasing.
    number_search_ : NumberSearch
        Held-out scores of the numbers of topics that were tried, if `n_components` was "auto"
        or "predict".
    statistics_ : MomentStatistics
        Statistics of all documents.
    scale_ : int
        1, or 100 if the first documents had fractional counts, which are counted in hundredths.
    model_ : TopicModel
        The model, as from `streaming_moments.fit_by`, with the coherence of its topics.
    n_features_in_ : int
        Number of words n.
    feature_names_in_ : (n,) array of str
        Column names, if X was a frame.

    Examples
    --------
    >>> rows = [[3, 2, 0, 0], [2, 3, 0, 0], [0, 0, 4, 1], [0, 0, 1, 4]] * 9
    >>> topics = MomentTopics(n_components=2, alpha0=0).fit(rows)
    >>> topics.transform([[5, 5, 0, 0]]).round(2).max()
    np.float64(1.0)
    >>> half = MomentTopics(2, alpha0=0).partial_fit(rows[:18])
    >>> other = half.like().partial_fit(rows[18:])
    >>> bool(np.allclose((half + other).components_, topics.components_, atol=0.05))
    True
    """

    _begun = ("scale_", "_basis")
    _seen = "documents"

    def __init__(
        self,
        n_components: int | Literal["auto", "predict"] = 2,
        *,
        alpha0: float | Literal["auto"] = "auto",
        method: str = "joint",
        refine: int | Literal["auto"] = ROUNDS,
        alpha: Literal["given", "auto"] = "given",
        polish: int | Literal["auto"] = 0,
        max_components: int | None = None,
        length_weights: Weighting = "even",
        random_state: RandomSeed = 0,
        keep_statistics: bool = False,
        verbose: int | bool = 0,
    ) -> None:
        self.n_components = n_components
        self.alpha0 = alpha0
        self.method = method
        self.refine = refine
        self.alpha = alpha
        self.polish = polish
        self.max_components = max_components
        self.length_weights = length_weights
        self.random_state = random_state
        self.keep_statistics = keep_statistics
        self.verbose = verbose

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return (documents, k) float64 topic proportions; each row has sum 1."""
        records = self._read(X)
        return self.model_.transform(records)

    def score(self, X: Any, y: object = None) -> float:
        """Return the mean log-likelihood of a held-out word, as in `perplexity`."""
        return -float(np.log(self.perplexity(X)))

    def perplexity(self, X: Any) -> float:
        """Return the document completion perplexity; lower is better.

        Raises
        ------
        InvalidInput
            No document has two words.
        """
        batch = self._read(X)
        return completion_perplexity(self.model_, batch, seed=self._seed)

    def top_words(
        self,
        number: int = 10,
        names: Sequence[str] | NDArray[Any] | None = None,
        by: Literal["relevance", "probability", "lift"] = "relevance",
    ) -> list[list[str]]:
        """Return the most descriptive words of each topic, best first.

        Parameters
        ----------
        number : int
            Number of words.
        names : sequence or array of str, optional
            Names of the columns of X, as from `CountVectorizer.get_feature_names_out`; by default
            those of a fitted frame, else column numbers.
        by : {"relevance", "probability", "lift"}
            As in `TopicModel.top_words`; with "probability" frequent words appear in most topics.

        Raises
        ------
        InvalidInput
            The number is below 1, the ranking is unknown, or the number of names differs from the
            columns.

        Examples
        --------
        >>> rows = [[3, 2, 0, 0], [2, 3, 0, 0], [0, 0, 4, 1], [0, 0, 1, 4]] * 9
        >>> MomentTopics(2, alpha0=0).fit(rows).top_words(2, names=["law", "tax", "sea", "ship"])
        [['sea', 'ship'], ['law', 'tax']]
        """
        require_fitting(MomentTopics.top_words, number=number, names=names)
        called = self._called(names)
        return [[called[word] for word in row] for row in self.model_.top_words(number, by)]

    def to_frame(
        self, number: int = 10, names: Sequence[str] | NDArray[Any] | None = None
    ) -> DataFrame:
        """Return a pandas frame with a row for each topic.

        Its columns are the share of the topic, the error of the share, coherences and top words.

        Parameters
        ----------
        number, names
            As for `top_words`, whose errors this method can raise too.

        Returns
        -------
        pandas.DataFrame
            Its index is called `topic`; words are the last column.

        Raises
        ------
        ModuleNotFoundError
            pandas is not installed; the message has the command that installs it.

        Examples
        --------
        >>> rows = [[3, 2, 0, 0], [2, 3, 0, 0], [0, 0, 4, 1], [0, 0, 1, 4]] * 9
        >>> topics = MomentTopics(2, alpha0=0).fit(rows)
        >>> topics.to_frame(2, names=["law", "tax", "sea", "ship"]).words.tolist()
        ['sea ship', 'law tax']
        """
        require_fitting(MomentTopics.to_frame, number=number, names=names)
        called = self._called(names)
        return self.model_.to_frame(called, number)

    def to_table(
        self, number: int = 10, names: Sequence[str] | NDArray[Any] | None = None
    ) -> Table:
        """Return the table of `to_frame` as an Arrow table."""
        require_fitting(MomentTopics.to_table, number=number, names=names)
        called = self._called(names)
        return self.model_.to_table(called, number)

    def plot(
        self,
        number: int = 8,
        names: Sequence[str] | NDArray[Any] | None = None,
        figure: Figure | None = None,
    ) -> list[Axes]:
        """Draw a panel for each topic: its top words, their probabilities and error bars.

        Parameters
        ----------
        number, names
            As for `top_words`, whose errors this method can raise too.
        figure : matplotlib.figure.Figure, optional
            Where to draw; by default a new figure of pyplot.

        Returns
        -------
        list of matplotlib.axes.Axes
            The panels.

        Raises
        ------
        InvalidInput
            The figure is not one of matplotlib.
        ModuleNotFoundError
            matplotlib is not installed; the message has the command that installs it.
        """
        require_fitting(MomentTopics.plot, number=number, names=names)
        called = self._called(names, "word ")
        return self.model_.plot(number, called, figure)

    def plot_map(
        self, names: Sequence[str] | NDArray[Any] | None = None, ax: Axes | None = None
    ) -> Axes:
        """Draw topics as circles in the plane.

        Topics with similar words are close to each other. The area of a circle shows the weight of
        its topic.

        Parameters
        ----------
        names : sequence of str, optional
            As for `top_words`. If the columns of X have no names, circles show only the numbers of
            topics.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure of pyplot.

        Returns
        -------
        matplotlib.axes.Axes
            The axes. Errors are those of `plot`.
        """
        require_fitting(MomentTopics.plot_map, names=names)
        if names is None and not hasattr(self, "feature_names_in_"):
            check_is_fitted(self)
            return plot_topic_map(self.model_, [""] * self.model_.n_topics, ax)
        words = [", ".join(row) for row in self.top_words(2, names)]
        return plot_topic_map(self.model_, words, ax)

    def _called(self, names: Sequence[str] | NDArray[Any] | None, before: str = "") -> list[str]:
        """Return the names of the columns of X.

        Without names, the name of a column is `before` followed by the number of the column.
        """
        check_is_fitted(self)
        if names is None:
            names = getattr(
                self,
                "feature_names_in_",
                [f"{before}{word}" for word in range(self.n_features_in_)],
            )
        if len(names) != self.n_features_in_:
            raise InvalidInput(
                f"{of_number(len(names), 'name')} given for "
                f"{of_number(self.n_features_in_, 'column')}; give a name for each column"
            )
        return [*map(str, names)]

    def _begin(self, records: CountBatch) -> None:
        found = isinstance(self.n_components, str)
        least = 1 if isinstance(self.n_components, str) else self.n_components
        require_topics(least)
        most = min(_MOST, records.n_words) if found else least
        most = most if self.max_components is None else self.max_components
        words = min(records.n_words, DEFAULT_CORE)
        if max(most, least) > words:
            name = "n_components" if least >= most else "max_components"
            raise InvalidInput(
                f"{name} is {max(most, least)}, but {of_number(words, 'word')} cannot separate "
                f"that many topics; give at most {words}"
            )
        if not (records.lengths > 1).any():
            raise NotIdentifiable(
                f"none of the {of_number(records.documents, 'document')} of X has two words, so no "
                "words occur together; give longer documents"
            )
        self._repeated = documents_repeated(records)
        self._basis = Basis.from_pilot(
            records, max(most, least), self._seed, length_weights=self.length_weights
        )

    def _counted(self, records: CountBatch, first: int) -> MomentStatistics:
        halves = self._halves(first, records.documents)
        return MomentStatistics.of(replace(records, halves=halves), self._basis)

    def _fitted(self, statistics: MomentStatistics) -> Self:
        k = self.n_components
        self.__dict__.pop("number_search_", None)
        if isinstance(k, str):
            self.number_search_ = search_topics(
                statistics,
                k,
                self.alpha0,
                self.method,
                self._seed,
                self.refine,
                report=self._reporter(),
            )
            k = self.number_search_.found(k)
        model = fit_reported(
            statistics,
            k,
            self.alpha0,
            self.method,
            self._seed,
            self.refine,
            self.alpha,
            self._reporter(),
        )
        self.statistics_ = statistics
        if model.rough_sentence and not too_few_line(model):
            warnings.warn(model.rough_sentence, stacklevel=4)
        return self._shown(model)

    def _shown(self, model: TopicModel) -> Self:
        self.model_ = with_coherence(model, self.statistics_)
        self.components_ = np.ascontiguousarray(model.topics.T)
        self.weights_ = model.weights.copy()
        return self

    def _records(self, X: Any, first: bool = False) -> CountBatch:
        least = _LEAST if first else 1
        try:
            checked = self._matrix(
                X, first, dtype=_DTYPES, ensure_min_samples=least, ensure_min_features=least
            )
        except (TypeError, ValueError) as error:
            if not holds_texts(X):
                raise
            raise InvalidInput(
                f"X holds texts, but {type(self).__name__} needs word counts; put a "
                "CountVectorizer before it: make_pipeline(CountVectorizer(), "
                f"{type(self).__name__}(...))"
            ) from error
        check_non_negative(checked, type(self).__name__)
        values = held_values(checked)
        whole = values.dtype.kind == "i" or not (values % 1).any()
        if first:
            self.scale_ = 1 if whole else _PARTS
            if not whole:
                warnings.warn(
                    f"counts are fractional, so they are rounded to {_PARTS}ths; give word counts, "
                    "as from CountVectorizer",
                    stacklevel=4,
                )
        if self.scale_ > 1:
            scaled = checked * float(self.scale_)
            return CountBatch.from_csr(scaled.rint() if is_sparse(scaled) else np.rint(scaled))
        return CountBatch.from_csr(checked)

    def _require_parameters(self) -> None:
        found = {"refine": ("auto",), "polish": ("auto",)}
        for name, words in found.items():
            value = getattr(self, name)
            if isinstance(value, str) and value in words:
                continue
            if isinstance(value, bool) or not isinstance(value, Integral):
                others = "".join(f' or "{word}"' for word in words)
                raise InvalidInput(f"{name} is {shown(value)}; give a whole number{others}")
        if self.alpha0 != "auto" and not isinstance(self.alpha0, Real):
            raise InvalidInput(
                f'alpha0 is {shown(self.alpha0)}; give a number of at least 0 or "auto"'
            )
        self._require_components()
        decomposition_called(self.method, 0)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return cast("Tags", tags)
