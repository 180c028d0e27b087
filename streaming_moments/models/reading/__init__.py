"""Reading of documents with given topics: infers their proportions and expected counts."""

from streaming_moments.lazy_imports import attach

attach(__name__, modules=("topic_reading",))
