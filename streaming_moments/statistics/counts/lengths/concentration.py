"""Effective number of documents in a corpus, on which the errors of topic shares depend."""

from __future__ import annotations

import numpy as np

from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram


def token_concentration(lengths: LengthHistogram, passages: bool = False) -> float:
    """Return `sum_d (c_d / C)^2`, the inverse of the effective number of documents.

    Document d has c_d of all C tokens. Each token counts once for any length weights, because
    shares of topics come from counted words, not from weighted moments. The result is above 0 and
    at most 1. Raises InvalidInput if no document has a token.

    With `passages`, the lengths are those of passages of unknown documents. The number of documents
    is then estimated by the number of passages that are shorter than half of the usual length. The
    estimate is rather low, because only about half of the documents end in such a passage. If the
    lengths of documents are exponentially distributed, the estimate is half of their number.

    Examples
    --------
    >>> token_concentration(LengthHistogram.of([10, 10, 10, 10]))
    0.25
    >>> token_concentration(LengthHistogram.of([200, 200, 200, 40, 200, 90]), passages=True)
    0.5
    """
    total = lengths.n_tokens
    if not total:
        raise InvalidInput("no document has a token; shares of topics need at least one")
    pairs = list(zip(lengths.lengths.tolist(), lengths.documents.tolist(), strict=True))
    own = sum(length**2 * documents for length, documents in pairs) / total**2
    if not passages:
        return float(own)
    tokens = np.cumsum([length * documents for length, documents in pairs], dtype=float)
    # the usual length: half of all tokens are in passages that are longer
    usual = pairs[int(np.searchsorted(tokens, total / 2))][0]
    ends = sum(documents for length, documents in pairs if 0 < 2 * length < usual)
    return float(min(1.0, max(own, 1 / max(ends, 1))))
