"""How many documents some tokens are of, also where documents were cut into passages."""

import numpy as np
import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.counts.lengths import LengthHistogram, LengthWeights
from streaming_moments.statistics.counts.lengths.concentration import token_concentration


def test_it_is_the_sum_of_the_squared_shares_of_the_documents():
    lengths = np.random.default_rng(0).integers(0, 400, 500)
    expected = ((lengths / lengths.sum()) ** 2).sum()
    assert token_concentration(LengthHistogram.of(lengths)) == pytest.approx(expected)
    weighted = LengthHistogram.of(lengths, LengthWeights.even(400))
    assert token_concentration(weighted) == pytest.approx(expected), "tokens count once"


def test_documents_of_one_passage_are_taken_as_they_are():
    one = LengthHistogram.of([7])
    assert token_concentration(one) == token_concentration(one, passages=True) == 1.0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("words", [300, 1000, 5000])
@pytest.mark.parametrize("law", ["exponential", "lognormal", "equal"])
def test_of_passages_it_is_that_of_their_documents_or_somewhat_more(law, words, seed):
    """Where each word is in the vocabulary with probability .6."""
    rng = np.random.default_rng(seed)
    longs = {
        "exponential": rng.exponential(words, 400),
        "lognormal": words * rng.lognormal(-0.32, 0.8, 400),
        "equal": rng.uniform(0.8, 1.2, 400) * words,
    }[law]
    kept, cut = [], []
    for long in np.maximum(longs, 1).astype(int):
        wholes, rest = divmod(int(long), 200)
        passages = rng.binomial([200] * wholes + [rest] * (rest > 0), 0.6)
        kept.append(passages.sum())
        cut += passages.tolist()
    own = token_concentration(LengthHistogram.of(kept))
    found = token_concentration(LengthHistogram.of(cut), passages=True)
    assert 0.75 * own < found < 4 * own
    assert found > token_concentration(LengthHistogram.of(cut))


def test_documents_without_a_token_are_refused():
    with pytest.raises(InvalidInput, match="no document has a token"):
        token_concentration(LengthHistogram.of([0, 0]))
