"""Corpora drawn from known models, to measure recovery against the truth."""

from streaming_moments.synthetic.corpora import (
    SyntheticCorpus,
    lda_corpus,
    single_topic_corpus,
    topic_error,
)

__all__ = ["SyntheticCorpus", "lda_corpus", "single_topic_corpus", "topic_error"]
