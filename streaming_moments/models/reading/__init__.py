"""Reading of documents by topics: proportions, and the counts that passes expect."""

from streaming_moments.lazy_imports import attach

attach(__name__, modules=("topic_reading",))
