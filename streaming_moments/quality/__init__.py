"""Quality of models: coherence, prediction, agreement, changes of topics, and drift of the data."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.numerics.relevance import top_words as top_words
    from streaming_moments.quality.agreement import adjusted_rand_index as adjusted_rand_index
    from streaming_moments.quality.coherences.npmi import npmi_coherence as npmi_coherence
    from streaming_moments.quality.coherences.umass import umass_coherence as umass_coherence
    from streaming_moments.quality.diversity import topic_diversity as topic_diversity
    from streaming_moments.quality.drift import Drift as Drift
    from streaming_moments.quality.drift import DriftBounds as DriftBounds
    from streaming_moments.quality.matching import MatchingRule as MatchingRule
    from streaming_moments.quality.matching import TopicMatching as TopicMatching
    from streaming_moments.quality.matching import compare_topics as compare_topics
    from streaming_moments.quality.matching import match_topics as match_topics
    from streaming_moments.quality.prediction import completion_perplexity as completion_perplexity
