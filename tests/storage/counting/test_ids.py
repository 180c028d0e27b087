"""Documents of token ids over a vocabulary, against a dictionary."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming_moments import Vocabulary
from streaming_moments.errors import InvalidInput
from streaming_moments.storage.counting.ids import IdIndex, count_ids
from streaming_moments.storage.formats import join_ids

# ids of every size, and those that fall on the slots of others
IDS = st.one_of(
    st.integers(0, 12), st.integers(0, 2**63 - 1), st.integers(0, 12).map(lambda i: i << 32)
)
DOCUMENTS = st.lists(st.lists(st.tuples(IDS, st.integers(1, 1000)), max_size=20), max_size=8)


@given(st.lists(IDS, min_size=1, max_size=20, unique=True), DOCUMENTS, st.booleans(), st.data())
def test_ids_are_counted_as_a_dictionary_counts_them(known, documents, counted, data):
    if documents and documents[0]:
        known = list(dict.fromkeys([*known, data.draw(st.sampled_from(documents[0]))[0]]))
    vocabulary = Vocabulary(tuple(map(str, known)), core=1, token_ids=tuple(known))
    chunk = join_ids(
        [
            (
                np.array([token_id for token_id, _ in document], dtype=np.int64),
                np.array([count for _, count in document], dtype=np.int64) if counted else None,
            )
            for document in [*documents, []]
        ]
    )
    batch, outside = count_ids(chunk, IdIndex.of(vocabulary))
    sums = [Counter() for _ in [*documents, []]]
    for document, own in zip(documents, sums, strict=False):
        for token_id, count in document:
            own[token_id] += count if counted else 1
    expected = [[own[token_id] for token_id in known] for own in sums]
    assert batch.to_csr().toarray().tolist() == expected
    assert batch.vocabulary == vocabulary.fingerprint
    assert outside == sum(map(sum, (own.values() for own in sums))) - batch.tokens


def test_a_vocabulary_of_terms_has_no_ids():
    with pytest.raises(InvalidInput, match="give a vocabulary of token ids"):
        IdIndex.of(Vocabulary(("sea",), core=1))
