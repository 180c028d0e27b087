"""Make the topics of a model into plain values that reports and pages store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from streaming_moments.models.topics import TopicModel
from streaming_moments.numerics.relevance import relevance, top_words
from streaming_moments.pipelines.reports.page import SampleDocument, TopicReport
from streaming_moments.pipelines.reports.tables import RELEVANCE_WEIGHT, topic_lines
from streaming_moments.statistics.counts.vocabulary import Vocabulary

_WORDS = 30
_IN_A_NAME = 2
_BAR = "error bar"  # the measure of this name has a field of its own in a report


def topics_of(
    model: TopicModel,
    vocabulary: Vocabulary,
    samples: Mapping[int, SampleDocument] = MappingProxyType({}),
    labels: Mapping[int, str] = MappingProxyType({}),
) -> tuple[TopicReport, ...]:
    """Return the topics of a model as reports store them.

    The keys of `samples` and `labels` are numbers of topics.

    Examples
    --------
    >>> import numpy as np
    >>> model = TopicModel.from_topics(np.array([[0.9], [0.1]]), np.array([1.0]))
    >>> topics_of(model, Vocabulary(("law", "sea"), core=2))[0].words
    (('law', 0.9, 0.9), ('sea', 0.1, 0.1))
    """
    lines = topic_lines(model, vocabulary, 10)
    columns = model.described().columns
    found = []
    for line, words in zip(lines, top_words(model.topics, _WORDS), strict=True):
        rows = [
            (
                vocabulary.terms[word],
                float(model.topics[word, line.topic]),
                float(model.word_probabilities[word]),
            )
            for word in words.tolist()
        ]
        bar, bars = None, ()
        if model.topic_bars is not None and model.word_bars is not None:
            bar = float(model.topic_bars[line.topic])
            bars = tuple(model.word_bars[words, line.topic].tolist())
        told = {name: float(values[line.topic]) for name, values in columns.items() if name != _BAR}
        found.append(
            TopicReport(
                line.topic,
                line.weight,
                line.npmi,
                line.words,
                tuple(rows),
                bar,
                bars,
                label=labels.get(line.topic),
                told=told,
                sample=samples.get(line.topic),
                coherences=line.coherences,
            )
        )
    return tuple(found)


def topic_names(topics: Sequence[TopicReport], what: str = "topic") -> tuple[str, ...]:
    """Return the name of each topic: its label, or two words, or more if two are not unique.

    A part without words is called by `what` and its number, such as "cluster 3".

    Examples
    --------
    >>> sea = TopicReport(0, 0.5, None, ("sea", "ship", "sail"), ())
    >>> topic_names([sea, sea, TopicReport(2, 0.5, None, ("law",), (), label="courts")])
    ('sea ship', 'sea ship sail', 'courts')
    """
    names: list[str] = []
    for topic in topics:
        words = topic.relevant or _by_relevance(topic)
        name, most = topic.label or " ".join(words[:_IN_A_NAME]), _IN_A_NAME
        while name in names and not topic.label and most < len(words):
            most += 1
            name = " ".join(words[:most])
        names.append(name or f"{what} {topic.topic}")
    return tuple(names)


def _by_relevance(topic: TopicReport) -> tuple[str, ...]:
    if not topic.words:
        return ()
    inside, overall = (np.array([row[place] for row in topic.words]) for place in (1, 2))
    scores = relevance(inside[:, None], overall, RELEVANCE_WEIGHT)
    return tuple(topic.words[place][0] for place in top_words(scores, _IN_A_NAME + 1)[0])
