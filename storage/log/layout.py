"""Layout: names of the files and folders of a store, and chunks of its arrays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from streaming_moments.errors import InvalidInput, printable
from streaming_moments.statistics.base import Foundation
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.storage.files.arrays import ArraySpec, chunk_path

LARGEST_CHUNK = 32 << 20  # largest size in bytes of a chunk of an array, before compression
# limit of all arrays of a row block together, in bytes, so that a worker can hold a few blocks
LARGEST_BLOCK = 56 << 20
FEWEST_BLOCKS = 8  # a store has at least this many row blocks, so that several workers can share it
COMMITS = "commits"
SEGMENTS = "segments"
MODELS = "models"
POLISHING = "polishing"  # folder of sums over documents, for a polished model not yet committed
SHARDS = "shards.parquet"
FORMAT_FILE = "format.json"
_LABEL = 100  # the label of a topic has at most this many characters
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


def commit_file(version: int) -> str:
    """Return the name of the file of a commit.

    Examples
    --------
    >>> commit_file(12)
    'commits/00000000000000000012.json'
    """
    return f"{COMMITS}/{version:020d}.json"


def reached_file() -> str:
    """Return the name of the note with the number of an existing version, normally the latest."""
    return "reached.json"


def segment_folder(segment: str) -> str:
    """Return the folder of a segment."""
    return f"{SEGMENTS}/{segment}"


def model_folder(name: str, identity: str) -> str:
    """Return the folder of a model; the identity separates two writers that use the same name."""
    return f"{MODELS}/{name}/{identity}"


def pass_folder(polishing: str, number: int, part: str) -> str:
    """Return the folder of the sums of one pass over a part of the documents, during a polish."""
    return f"{POLISHING}/{polishing}/{number}-{part}"


def vocabulary_file(fingerprint: str) -> str:
    """Return the name of the file of a vocabulary."""
    return f"vocabulary/{fingerprint}.json"


def basis_folder(fingerprint: str) -> str:
    """Return the folder of a basis."""
    return f"basis/{fingerprint}"


def require_name(name: str, what: str = "a model or tag") -> str:
    """Raise InvalidInput unless a name is a plain file name that does not begin with a dot."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{what} cannot be named {name[:100]!r}; use up to 100 of the characters "
            "A-Z a-z 0-9 . _ - and do not begin with a dot"
        )
    return name


def require_label(text: str) -> str:
    """Raise InvalidInput for a label that is empty, over 100 characters, or not printable."""
    if not 0 < len(text.strip()) <= len(text) <= _LABEL or printable(text) != text:
        raise InvalidInput(
            f"a topic cannot be named {text[:_LABEL]!r}; use 1 to {_LABEL} characters on one line"
        )
    return text


def row_blocks_for(foundation: Foundation) -> int:
    """Return the number of row blocks of a new store, at least min(8, n).

    A chunk then has at most 32 MiB, and all arrays of a block together have at most 56 MiB.

    Examples
    --------
    >>> import numpy as np
    >>> from streaming_moments.statistics.counts.basis import Basis
    >>> from streaming_moments.statistics.counts.foundation import CountsFoundation
    >>> basis = Basis(np.eye(400, 50, dtype=np.int8), n_words=100_000)
    >>> row_blocks_for(CountsFoundation(basis, codocuments=True))
    31
    """
    sizes = [8 * prod(shape) for shape in foundation.shapes(RowBlock()).values()]
    needed = max(-(-max(sizes) // LARGEST_CHUNK), -(-sum(sizes) // LARGEST_BLOCK))
    return min(foundation.rows, max(FEWEST_BLOCKS, needed))


@dataclass(frozen=True)
class SegmentLayout:
    """How the statistics of a segment are cut into chunks.

    row_blocks : number of interleaved row blocks B, `1 <= B <= n`; row i is at `[i % B, i // B]`
    rows : number of counted rows, if the foundation has more
    """

    foundation: Foundation
    row_blocks: int
    rows: int | None = None

    def of_first(self, rows: int | None) -> SegmentLayout:
        """Return the layout of the first `rows` rows only; None means all rows.

        As blocks are interleaved, a block of fewer rows holds the leading rows of the same block of
        more rows.
        """
        return replace(self, rows=None if rows == self.foundation.rows else rows)

    @property
    def specs(self) -> Mapping[str, ArraySpec]:
        """Specification of each row array: (B, ceil(n / B), ...), a chunk for each row block."""
        # take the shapes of block 0, which is the longest; the other blocks are padded with zeros
        shapes = self.foundation.shapes(self.block(0), self.rows)
        longest = max(shape[0] for shape in shapes.values())
        return {
            name: ArraySpec(
                (self.row_blocks, *shape),
                (1, *shape),
                compressed=self.foundation.compresses(name),
                dimensions=_dimensions(name, shape, longest),
            )
            for name, shape in shapes.items()
        }

    @property
    def block_bytes(self) -> int:
        """Bytes of the largest row block."""
        return 8 * sum(prod(shape) for shape in self.foundation.shapes(self.block(0)).values())

    @property
    def state_bytes(self) -> int:
        """Bytes of all rows."""
        return 8 * sum(prod(shape) for shape in self.foundation.shapes(RowBlock()).values())

    def chunks(self, index: int) -> list[str]:
        """Return the paths of the files of row block `index`, one for each array."""
        place = self.block(index).index
        return [chunk_path(name, spec, place) for name, spec in self.specs.items()]

    def block(self, index: int) -> RowBlock:
        """Return row block `index`; InvalidInput if it does not exist."""
        return RowBlock(index, self.row_blocks)


def _dimensions(name: str, shape: tuple[int, ...], longest: int) -> tuple[str, ...]:
    """Return names of the axes of an array; axes of a segment share a name only if equally long."""
    rows = "row" if shape[0] == longest else f"{name}_row"
    return ("block", rows, *(f"{name}_{axis}" for axis in range(2, len(shape) + 1)))
