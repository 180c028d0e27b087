"""Adding: projected batches into the row arrays of a block, which may hold others already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from streaming_moments.errors import BoundExceeded, ForeignStatistics, short
from streaming_moments.statistics.base import Arrays
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.kernels import triple_kernels
from streaming_moments.statistics.counts.lengths.room import LARGEST_TOTAL
from streaming_moments.statistics.counts.projection import ProjectedBatch
from streaming_moments.statistics.row_block import RowBlock


def add_projected(
    batches: Iterable[ProjectedBatch], basis: Basis, arrays: Arrays, block: RowBlock
) -> None:
    """Add batches to the row arrays of `MomentStatistics`, in place.

    Parameters
    ----------
    batches : iterable of ProjectedBatch
        Of the basis, `joined` as far as memory allows; the sum of all bounds that were ever added
        stays below 2^62.
    basis : Basis
        Q.
    arrays : mapping
        int64 row arrays of the block by name, `even_pair_counts` and `codocuments` only where
        they are gathered.
    block : RowBlock
        Which words' rows.

    Raises
    ------
    ForeignStatistics
        A batch of another basis.

    Examples
    --------
    >>> from streaming_moments import CountBatch, MomentStatistics
    >>> basis = Basis(np.array([[1], [-1], [2]], dtype=np.int8), n_words=3)
    >>> one = ProjectedBatch.of(CountBatch.from_csr([[2, 1, 0], [0, 1, 1]]), basis)
    >>> sums = {name: array.copy() for name, array in MomentStatistics.zero(basis).arrays().items()}
    >>> add_projected([one, one], basis, sums, RowBlock())
    >>> sums["word_counts"].tolist()
    [4, 4, 2]
    """
    first, step = block.index, block.step
    for projected in of_basis(basis, batches):
        by_word = (projected.starts, projected.documents, projected.values)
        word_counts, frequencies = arrays["word_counts"], arrays["document_frequencies"]
        np.add(word_counts, projected.word_counts[block.rows], out=word_counts)
        if "weighted_counts" in arrays:
            weighted = arrays["weighted_counts"]
            np.add(weighted, projected.weighted_counts[block.rows], out=weighted)
        np.add(frequencies, np.diff(projected.starts)[block.rows], out=frequencies)
        optional = (arrays.get("codocuments"), arrays.get("even_pair_counts"))
        projected.add_pairs(block, arrays["pair_counts"], *optional)
        sketch = (projected.projections, projected.long, arrays["triple_sketch"])
        triple_kernels.add_triples(first, step, *by_word, *sketch)
        if projected.long.any():
            triple_kernels.add_long_triples(first, step, *by_word, *sketch)


def of_basis(basis: Basis, batches: Iterable[ProjectedBatch]) -> Iterator[ProjectedBatch]:
    """The batches, one of another basis refused with `ForeignStatistics`."""
    for projected in batches:
        if projected.basis != basis:
            raise ForeignStatistics(foreign("basis", projected.basis, basis))
        yield projected


def refuse_overflow(bound: float) -> None:
    """Refuse sums that may leave what their integers hold, with what to do.

    Raises
    ------
    BoundExceeded
        The bound is 2^62 or more.
    """
    if bound >= LARGEST_TOTAL:
        raise BoundExceeded(
            f"a sum of the triple sketch or of the pair counts may reach {bound:.3g}, above 2^62; "
            "cut the documents into shorter passages (--passage-words), or open another store"
        )


def foreign(what: str, one: Basis, other: Basis) -> str:
    """Message of two bases that cannot be combined."""
    return (
        f"{what} {short(one.fingerprint)} (vocabulary {short(one.vocabulary)}) and {what} "
        f"{short(other.fingerprint)} (vocabulary {short(other.vocabulary)}) differ; "
        "only statistics of one basis can be combined"
    )
