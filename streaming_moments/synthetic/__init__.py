"""Corpora drawn from known models, to measure recovery against the truth."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.synthetic.corpora import (
        SyntheticCorpus,
        lda_corpus,
        single_topic_corpus,
        topic_error,
    )
    from streaming_moments.synthetic.hidden import markov_sequences, view_records

__all__ = [
    "SyntheticCorpus",
    "lda_corpus",
    "markov_sequences",
    "single_topic_corpus",
    "topic_error",
    "view_records",
]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "corpora": ("SyntheticCorpus", "lda_corpus", "single_topic_corpus", "topic_error"),
            "hidden": ("markov_sequences", "view_records"),
        },
    )
