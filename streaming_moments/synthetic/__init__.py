"""Corpora drawn from known models, to measure recovery against the truth."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.synthetic.corpora import SyntheticCorpus as SyntheticCorpus
    from streaming_moments.synthetic.corpora import lda_corpus as lda_corpus
    from streaming_moments.synthetic.corpora import single_topic_corpus as single_topic_corpus
    from streaming_moments.synthetic.corpora import topic_error as topic_error
    from streaming_moments.synthetic.hidden import markov_sequences as markov_sequences
    from streaming_moments.synthetic.hidden import view_records as view_records
