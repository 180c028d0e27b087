"""COHERENCES: all measures of coherence, one line each, in the order in which pages show them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from streaming_moments.models.topics import TopicModel
from streaming_moments.quality.coherences.base import COHERENCE_WORDS, Coherence, TopWords
from streaming_moments.quality.coherences.npmi import NPMI
from streaming_moments.quality.coherences.umass import UMASS
from streaming_moments.statistics.counts.weighted import Statistics

COHERENCES: Mapping[str, Coherence] = MappingProxyType(
    {
        NPMI.key: NPMI,
        UMASS.key: UMASS,
    }
)


def with_coherence(model: TopicModel, statistics: Statistics) -> TopicModel:
    """Return the model with coherences of its topics, if the statistics can give them.

    For this, `statistics` must be of all words, and count in how many documents two words occur.

    Examples
    --------
    >>> from streaming_moments import Basis, CountBatch, MomentStatistics, fit
    >>> batch = CountBatch.from_csr([[3, 2, 0, 0], [2, 3, 0, 0], [0, 0, 4, 1], [0, 0, 1, 4]] * 9)
    >>> statistics = MomentStatistics.of(batch, Basis.from_pilot(batch, max_topics=1))
    >>> with_coherence(fit(statistics, 2), statistics).npmi.round(2)
    array([-0.33, -0.33])
    """
    joint, alone = statistics.codocuments, statistics.document_frequencies
    number = 0 if joint is None else min(COHERENCE_WORDS, len(joint))
    if joint is None or number < 2:
        return model
    documents = float(statistics.length_histogram.aged_documents)
    words = TopWords.of(model.topics, alone, joint, documents, number)
    return model.with_coherence(**{key: one.of(words) for key, one in COHERENCES.items()})


def followed() -> list[Coherence]:
    """Return the measures of coherence that pages and nightly jobs show."""
    return [one for one in COHERENCES.values() if one.followed]
