"""How good models are: coherence, agreement, prediction, what became of topics, drift."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.quality.agreement import adjusted_rand_index
    from streaming_moments.quality.coherence import npmi_coherence, topic_diversity, umass_coherence
    from streaming_moments.quality.drift import Drift, DriftBounds
    from streaming_moments.quality.matching import (
        MatchingRule,
        TopicMatching,
        compare_topics,
        match_topics,
    )
    from streaming_moments.quality.prediction import completion_perplexity
    from streaming_moments.quality.relevance import top_words

__all__ = [
    "Drift",
    "DriftBounds",
    "MatchingRule",
    "TopicMatching",
    "adjusted_rand_index",
    "compare_topics",
    "completion_perplexity",
    "match_topics",
    "npmi_coherence",
    "top_words",
    "topic_diversity",
    "umass_coherence",
]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "coherence": ("npmi_coherence", "topic_diversity", "umass_coherence"),
            "agreement": ("adjusted_rand_index",),
            "relevance": ("top_words",),
            "prediction": ("completion_perplexity",),
            "matching": ("MatchingRule", "TopicMatching", "compare_topics", "match_topics"),
            "drift": ("Drift", "DriftBounds"),
        },
    )
