"""Row blocks of a version of a store, as tasks take them: addresses, or statistics kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from distributed import Client, Future

from streaming_moments.basis import Basis
from streaming_moments.lengths import Lengths
from streaming_moments.pipelines.memory import number_of_strips
from streaming_moments.row_lengths import RowLengths
from streaming_moments.weighted import Statistics


class StatisticsSource(Protocol):
    """A version of a store, or a window of it: statistics to be read by row block."""

    @property
    def basis(self) -> Basis: ...
    @property
    def row_blocks(self) -> int: ...
    @property
    def codocuments(self) -> bool: ...
    @property
    def version(self) -> int: ...

    def length_histogram(self) -> Lengths:
        """Documents by length."""

    def row_lengths(self) -> RowLengths[Lengths]:
        """Which documents count a row."""

    def load_block(self, index: int) -> Statistics:
        """Statistics of one row block."""


@dataclass(frozen=True, eq=False)
class BlockAddress:
    """A row block of a version of a store, for tasks that read it themselves."""

    store: StatisticsSource
    index: int


def load_block(address: BlockAddress) -> Statistics:
    """Sum of a row block over the segments of the version."""
    return address.store.load_block(address.index)


def loaded(source: BlockAddress | Statistics) -> Statistics:
    """The statistics, read now unless they were kept."""
    return load_block(source) if isinstance(source, BlockAddress) else source


def block_sources(
    client: Client, store: StatisticsSource, keep: bool
) -> list[BlockAddress | Future[Any]]:
    """All row blocks: addresses, or with `keep` statistics that stay on the workers."""
    addresses = [BlockAddress(store, index) for index in range(store.row_blocks)]
    if not keep:
        return list(addresses)
    return [client.submit(load_block, address, pure=False) for address in addresses]


def strips(
    blocks: Sequence[BlockAddress | Future[Any]], each_bytes: int
) -> list[list[BlockAddress | Future[Any]]]:
    """Blocks shared out so that the evidence of all strips, of so many bytes each, stays bounded.

    The number depends on nothing but these bytes and the blocks, so neither does the order of the
    sums.
    """
    number = number_of_strips(len(blocks), each_bytes)
    return [list(blocks[start::number]) for start in range(number)]
