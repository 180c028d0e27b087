"""Data drawn from known models, to measure how well fits recover these models."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.synthetic.corpora import SyntheticCorpus as SyntheticCorpus
    from streaming_moments.synthetic.corpora import lda_corpus as lda_corpus
    from streaming_moments.synthetic.corpora import single_topic_corpus as single_topic_corpus
    from streaming_moments.synthetic.corpora import topic_error as topic_error
    from streaming_moments.synthetic.graphs import community_graph as community_graph
    from streaming_moments.synthetic.graphs import membership_error as membership_error
    from streaming_moments.synthetic.hidden import markov_sequences as markov_sequences
    from streaming_moments.synthetic.hidden import view_records as view_records
    from streaming_moments.synthetic.mixtures import amari_distance as amari_distance
    from streaming_moments.synthetic.mixtures import factor_rows as factor_rows
    from streaming_moments.synthetic.mixtures import mixture_rows as mixture_rows
    from streaming_moments.synthetic.sets import feature_sets as feature_sets
    from streaming_moments.synthetic.sets import probability_error as probability_error
    from streaming_moments.synthetic.tables import latent_tree_table as latent_tree_table
