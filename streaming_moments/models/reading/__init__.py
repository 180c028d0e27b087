"""Reading of documents with given topics: their proportions, and expected counts for passes."""

from streaming_moments.lazy_imports import attach

attach(__name__, modules=("topic_reading",))
