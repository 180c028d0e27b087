"""Seams: corrections of separately counted pieces for the windows that span several pieces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.sequences.pieces import (
    ABSENT,
    EDGES,
    KEY,
    LENGTH,
    Pieces,
    SequenceTotals,
)
from streaming_moments.statistics.sequences.windows import UNKNOWN, PreparedWindows, SymbolBatch


def seams_of(pieces: Pieces, sketch: Basis, halves: bool) -> PreparedWindows:
    """Return corrections of sums in which each piece was counted as if it were a whole sequence.

    The corrections add the windows across seams, which have at most two symbols on either side of
    a seam. They subtract the first symbol of each piece that continues a sequence, because it was
    counted as the beginning of a sequence. A window spans two pieces, or more if one is short.

    Examples
    --------
    >>> one = Pieces.of(["a"], np.array([[0, 0, 1, 0]]), True, np.array([2]), [[0, 1, -2, -2]])
    >>> two = Pieces.of(["a"], np.array([[2, 0, 2, 0]]), True, np.array([1]), [[2, -2, -2, -2]])
    >>> sketch = Basis(np.eye(3, dtype=np.int8), 3, "")
    >>> found = seams_of(one + two, sketch, halves=False)
    >>> found.counts, found.firsts, found.totals.n_documents
    (array([1]), array([ 0,  0, -1]), -1)
    """
    follows, joined = pieces.follows, pieces.joined
    several = follows.copy()
    several[:-1] |= follows[1:]
    table, follows, joined = pieces.table[several], follows[several], joined[several]
    lengths, odd = table[:, LENGTH], (table[:, KEY.start] & 1).astype(np.bool_)
    # replace each long piece by its ends, with a separator between them, so that no window has
    # symbols of both ends
    between = np.where(lengths > 2, UNKNOWN, ABSENT)[:, None]
    edges = table[:, EDGES]
    ends = np.hstack([edges[:, :2], between, edges[:, 2:]])
    sizes = (ends != ABSENT).sum(axis=1)
    starts = np.flatnonzero(~joined)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    batch = SymbolBatch(
        offsets[np.append(starts, sizes.size)],
        ends[ends != ABSENT].astype(np.int32),
        np.zeros(starts.size, np.int8),
        np.zeros(starts.size, np.bool_),
        odd[starts],
    )
    across = PreparedWindows.of(batch, sketch, halves)
    n = sketch.n_words
    later = edges[follows, 0]
    known = later >= 0
    whole = np.flatnonzero(~follows)
    together = np.add.reduceat(lengths, whole) if whole.size else lengths
    return replace(
        across,
        firsts=-np.bincount(later[known], minlength=n),
        odd_firsts=-np.bincount(later[known & odd[follows]], minlength=n),
        totals=SequenceTotals(
            -int(follows.sum()),
            0,
            across.totals.triples,
            int((together < 3).sum() - (lengths < 3).sum()),
            -int((follows & ~odd).sum()) if halves else 0,
            across.totals.even_triples,
        ),
    )
