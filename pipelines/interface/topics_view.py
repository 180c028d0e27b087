"""Topics: a model with its words, to read and apply in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Column, Columns, DataFrame, Table
from streaming_moments.errors import InvalidInput
from streaming_moments.models.stored import is_known
from streaming_moments.models.topics import TopicModel
from streaming_moments.numerics.relevance import relevance, top_words
from streaming_moments.pipelines.interface.records import is_missing
from streaming_moments.pipelines.interface.remedies import store_door
from streaming_moments.pipelines.reports.status import stale_line
from streaming_moments.plots import Axes, Figure
from streaming_moments.printing.html_table import html_table
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.short_repr import in_a_line
from streaming_moments.quality.coherences.base import coherence_of
from streaming_moments.quality.coherences.registry import COHERENCES, followed
from streaming_moments.quality.topic_plots import plot_topic_map
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.counting import WordIndex, count_column
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.formats import encoded
from streaming_moments.storage.operations.staleness import Staleness

_SHOWN = 10
_RELEVANCE = 0.6


@store_door
@dataclass(frozen=True, eq=False, repr=False)
class Topics:
    """A model of topics with its words.

    Parameters
    ----------
    model : TopicModel
        Model of n words and k topics.
    vocabulary : Vocabulary
        The n words.
    policy : TokenPolicy or None
        How a text becomes tokens; None for token ids. Texts are not split into passages.
    labels : mapping
        Names of topics, by number.
    stale : Staleness, optional
        For a stored model: documents counted and forgotten since the fit.
    """

    model: TopicModel
    vocabulary: Vocabulary
    policy: TokenPolicy | None = field(default=None)
    labels: Mapping[int, str] = field(default_factory=dict)
    stale: Staleness | None = None

    @property
    def n_topics(self) -> int:
        """Number of topics."""
        return self.model.n_topics

    def __repr__(self) -> str:
        named = ["-".join(words[:2]) for words in self.top_words(2)]
        documents = of_number(self.model.documents, "document")
        return in_a_line(
            "Topics", [f"{self.model.n_topics} of {documents}: {named[0]}", *named[1:]]
        )

    def top_words(self, number: int = _SHOWN, weight: float = _RELEVANCE) -> list[list[str]]:
        """Return the most relevant words of each topic, best first.

        Parameters
        ----------
        number : int
            Number of words.
        weight : float
            lambda of `numerics.relevance`: 1 ranks by probability, 0 by lift.

        Raises
        ------
        InvalidInput
            The number is below 1, or lambda is outside 0 to 1.

        Examples
        --------
        >>> half = np.array([[0.5, 0.0], [0.5, 0.0], [0.0, 1.0]])
        >>> model = TopicModel.from_topics(half, np.array([0.6, 0.4]))
        >>> Topics(model, Vocabulary(("law", "tax", "sea"), core=3)).top_words(1)
        [['law'], ['sea']]
        """
        if not isinstance(number, int) or number < 1:
            raise InvalidInput(
                f"the number of words is {number!r}; give a whole number of at least 1"
            )
        scores = relevance(self.model.topics, self.model.word_probabilities, weight)
        terms = self.vocabulary.terms
        return [[terms[word] for word in words] for words in top_words(scores, number)]

    def transform(self, texts: Iterable[str]) -> NDArray[np.float64]:
        """Return (documents, k) float64 topic proportions.

        A text without known words gets the weights of the topics. Texts are read whole, also if the
        store cuts its documents into passages; `Store.transform` reads each passage.

        Parameters
        ----------
        texts : iterable of str
            Whole documents.

        Raises
        ------
        InvalidInput
            The input is not texts, or the model is of token ids.

        Examples
        --------
        >>> half = np.array([[0.5, 0.0], [0.5, 0.0], [0.0, 1.0]])
        >>> model = TopicModel.from_topics(half, np.array([0.6, 0.4]))
        >>> policy = TokenPolicy()
        >>> words = Vocabulary(("law", "tax", "sea"), core=3, policy=policy.fingerprint)
        >>> Topics(model, words, policy).transform(["The sea!", "law, tax"]).round(2).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        return self.model.transform(self._counted(texts))

    def read(self, texts: Iterable[str]) -> Columns:
        """Return the known words, the topic and the proportions of each text.

        The result has methods `to_frame` and `to_table`.

        Parameters
        ----------
        texts : iterable of str
            Whole documents; errors as in `transform`. If they are a series of pandas, the result
            has its index.

        Examples
        --------
        >>> model = TopicModel.from_topics(np.eye(2), np.array([0.6, 0.4]))
        >>> words = Vocabulary(("law", "sea"), core=2, policy=TokenPolicy().fingerprint)
        >>> found = Topics(model, words, TokenPolicy()).read(["the sea", "a law"])
        >>> found.to_frame()["topic"].tolist()
        [1, 0]
        """
        found = self.model.read(self._counted(texts))
        # test for `iloc`, because a list has an attribute `index`, too: a method
        return replace(found, index=cast("Any", texts).index) if hasattr(texts, "iloc") else found

    def _counted(self, texts: Iterable[str]) -> CountBatch:
        batch, _ = count_column(encoded(_require_texts(texts)), self._index)
        # a model that was made from arrays names no vocabulary, so the batch must not name one
        if not self.model.vocabulary:
            batch = CountBatch(batch.indptr, batch.words, batch.counts, batch.n_words)
        return batch

    def known_shares(self, texts: Iterable[str]) -> NDArray[np.float64]:
        """Return (documents,) float64 shares of known words of texts; 1 for texts without words.

        Texts in another language have few known words. If fewer than a fifth of the words are
        known, the topics of a text mean little.

        Parameters
        ----------
        texts : iterable of str
            Whole documents; errors as in `transform`.

        Examples
        --------
        >>> model = TopicModel.from_topics(np.eye(2), np.array([0.6, 0.4]))
        >>> words = Vocabulary(("law", "sea"), core=2, policy=TokenPolicy().fingerprint)
        >>> Topics(model, words, TokenPolicy()).known_shares(["the sea", "das Meer", ""]).tolist()
        [0.5, 0.0, 1.0]
        """
        found = self._index.counted(encoded(_require_texts(texts)))
        words = found.batch.lengths + found.outside
        return np.where(words > 0, found.batch.lengths / np.maximum(words, 1), 1.0)

    def to_frame(self, number: int = _SHOWN) -> DataFrame:
        """Return a pandas frame with a row for each topic: name, share, error bar, top words.

        The name is the label of a topic, or its two top words. Labels have a column of their own,
        which comes first, if any topic has one.
        """
        return self._columns(number).to_frame("topic")

    def to_table(self, number: int = _SHOWN) -> Table:
        """Return the content of `to_frame` as an Arrow table, with topics in order."""
        return self._columns(number).to_table()

    def _columns(self, number: int) -> Columns:
        found: dict[str, Column] = {}
        if self.labels:
            called = (self.labels.get(topic, "") for topic in range(self.model.n_topics))
            found["label"] = Column.of_values(called)
        found["name"] = Column.of_values(self.names)
        found["share"] = Column(self.model.weights)
        if self.model.topic_bars is not None:
            found["bar"] = Column(self.model.topic_bars)
        known = {key: coherence_of(self.model, key) for key in COHERENCES}
        found |= {key: Column(np.asarray(one)) for key, one in known.items() if one is not None}
        found["words"] = Column.of_values(" ".join(words) for words in self.top_words(number))
        return Columns(found)

    def plot(self, number: int = 8, figure: Figure | None = None) -> list[Axes]:
        """Draw a panel for each topic: its top words, their probabilities and error bars.

        Parameters
        ----------
        number : int
            Words of each topic.
        figure : matplotlib.figure.Figure, optional
            Figure to draw on; by default a new one of pyplot.

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
        return self.model.plot(number, self.vocabulary.terms, figure, self.names)

    def plot_map(self, ax: Axes | None = None) -> Axes:
        """Draw topics as circles in the plane.

        Topics with similar words are close to each other. The area of a circle shows the weight of
        its topic.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default those of a new figure of pyplot.

        Returns
        -------
        matplotlib.axes.Axes
            The axes; errors as in `plot`.
        """
        return plot_topic_map(self.model, self.names, ax)

    @property
    def names(self) -> list[str]:
        """Label of each topic, or its two top words."""
        words = [" ".join(words) for words in self.top_words(2)]
        return [self.labels.get(topic, name) for topic, name in enumerate(words)]

    def to_pyldavis(self, texts: Iterable[str]) -> dict[str, Any]:
        """Return arguments for pyLDAvis: `pyLDAvis.prepare(**topics.to_pyldavis(texts))`.

        Documents without known words are left out, because pyLDAvis refuses them.

        Parameters
        ----------
        texts : iterable of str
            Documents to show, counted or not.

        Returns
        -------
        dict
            `topic_term_dists` (k, n), `doc_topic_dists` (d, k), `doc_lengths` (d,), `vocab`, and
            `term_frequency` (n,), which is the expected frequency of each word in these documents.

        Raises
        ------
        InvalidInput
            As in `transform`, or no document has a known word.
        """
        listed = _require_texts(texts)
        batch, _ = count_column(encoded(listed), self._index)
        known = np.flatnonzero(batch.lengths)
        if not known.size:
            raise InvalidInput(f"none of {len(listed)} texts has a word of the model; give others")
        proportions = self.transform([listed[place] for place in known])
        lengths = batch.lengths[known]
        topics = self.model.smoothed(1e-3)
        topics = (topics / topics.sum(axis=0)).T
        return {
            "topic_term_dists": topics,
            "doc_topic_dists": proportions / proportions.sum(axis=1, keepdims=True),
            "doc_lengths": lengths,
            "vocab": list(self.vocabulary.terms),
            "term_frequency": (lengths @ proportions) @ topics,
        }

    def _repr_html_(self) -> str:
        scores = [(one, coherence_of(self.model, one.key)) for one in followed()]
        known = [(one, values) for one, values in scores if is_known(values)]
        bars = self.model.topic_bars
        rows = [
            (
                self.labels.get(place, place),
                f"{share:.1%}",
                *(() if bars is None else (f"{bars[place]:.2f}",)),
                *(f"{values[place]:.{one.digits}f}" for one, values in known),
                " ".join(words),
            )
            for place, (share, words) in enumerate(
                zip(self.model.weights, self.top_words(), strict=True)
            )
        ]
        documents = of_number(self.model.documents, "document")
        said = f"{of_number(self.model.n_topics, 'topic')} of {documents}"
        if self.stale is not None and self.stale.is_stale:
            said += f"; {stale_line(self.stale)}"
        measured = [] if bars is None else ["L1 error of words"]
        head = ["topic", "share", *measured, *(one.name for one, _ in known), "words"]
        return html_table(said, head, rows)

    @property
    def _index(self) -> WordIndex:
        if self.policy is None or self.vocabulary.token_ids is not None:
            raise InvalidInput(
                "the model is of token ids, so it reads no texts; give count batches to its "
                "attribute `model`"
            )
        return WordIndex.of(self.vocabulary, self.policy.of_whole_texts)


def _require_texts(texts: object) -> list[str]:
    if isinstance(texts, (str, bytes, Mapping)) or not isinstance(texts, Iterable):
        raise InvalidInput(
            f"the texts are of type {type(texts).__name__}; give a list of texts, each a document"
        )
    if hasattr(texts, "columns"):
        # iterating over a frame gives the names of its columns
        raise InvalidInput(
            f"the texts are a table with columns {', '.join(map(str, texts.columns))}; give the "
            "column of the texts, such as frame['text']"
        )
    # iterating over an Arrow array would give scalars of Arrow instead of strings
    listed = texts.to_pylist() if hasattr(texts, "to_pylist") else list(texts)
    for place, text in enumerate(listed, 1):
        if is_missing(text):
            raise InvalidInput(
                f"text {place} is missing; leave it out, in pandas by frame['text'].dropna()"
            )
        if not isinstance(text, str):
            remedy = "join its words by blanks" if isinstance(text, list) else "give it as str"
            raise InvalidInput(f"text {place} is of type {type(text).__name__}; {remedy}")
    return listed
