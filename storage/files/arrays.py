"""Zarr v3 arrays as files in memory: Zarr encodes and decodes, folders move the bytes.

The bytes that are hashed are so the very bytes that are written and read, on every storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec
from zarr.core.buffer import Buffer, cpu
from zarr.storage import MemoryStore

from streaming_moments.errors import StoreError

# Most counts need one byte of eight: the others side by side are zeros. Four times as fast as
# zstd at level 1, both ways, and its files a fifth larger.
_COUNTS = BloscCodec(cname="lz4", clevel=5, shuffle="shuffle")


@dataclass(frozen=True)
class ArraySpec:
    """How an array is stored.

    Parameters
    ----------
    shape : tuple of int
        Of the array.
    chunks : tuple of int
        Of a chunk.
    dtype : str
        Of the entries.
    compressed : bool
        Whether its bytes are shuffled and compressed by LZ4; every chunk ends with its CRC-32C
        either way.
    dimensions : tuple of str, optional
        Names of the axes, by which xarray opens the group.
    """

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: str = "int64"
    compressed: bool = True
    dimensions: tuple[str, ...] | None = None

    @classmethod
    def whole(cls, array: NDArray[Any], name: str = "") -> ArraySpec:
        """An array of one chunk; its axes are called after its name."""
        chunks = tuple(max(1, size) for size in array.shape)
        dimensions = tuple(f"{name}_{axis}" for axis in range(array.ndim)) if name else None
        return cls(array.shape, chunks, str(array.dtype), dimensions=dimensions)


def encode_metadata(
    specs: Mapping[str, ArraySpec], attributes: Mapping[str, Any]
) -> dict[str, bytes]:
    """Files that describe a group and its arrays, by path."""
    files: dict[str, Buffer] = {}
    _create_group(files, specs, attributes)
    return {path: content.to_bytes() for path, content in files.items()}


def encode_chunks(
    specs: Mapping[str, ArraySpec], chunks: Mapping[str, NDArray[Any]], index: int = 0
) -> dict[str, bytes]:
    """Files of the chunks at place `index` of the first axis, by path.

    Parameters
    ----------
    specs : mapping
        How each array is stored; the chunks span all axes but the first.
    chunks : mapping
        Entries of each array: a whole chunk, or all of an array of one chunk.
    index : int
        Which chunk.
    """
    files: dict[str, Buffer] = {}
    # arrays opened anew would forget that chunks of zeros are to be written
    arrays = _create_group(files, {name: specs[name] for name in chunks}, {})
    described = set(files)
    for name, entries in chunks.items():
        if entries.size:
            whole = specs[name].shape == entries.shape
            arrays[name][... if whole else slice(index, index + 1)] = entries
    return {path: files[path].to_bytes() for path in files.keys() - described}


def decode(files: Mapping[str, bytes], where: str) -> zarr.Group:
    """Group of the files, by path; its arrays read what the files hold.

    Raises
    ------
    StoreError
        Files that describe no group.
    """
    buffers: dict[str, Buffer] = {
        path: cpu.Buffer.from_bytes(content) for path, content in files.items()
    }
    try:
        return zarr.open_group(MemoryStore(buffers, read_only=True), mode="r", zarr_format=3)
    except (ValueError, KeyError, TypeError, FileNotFoundError) as error:
        raise StoreError(f"{where} is no Zarr group ({error}); restore it from a copy") from error


def array_in(group: zarr.Group, name: str, where: str) -> zarr.Array[Any]:
    """Array of a decoded group.

    Raises
    ------
    StoreError
        There is none of that name, or none that numbers can be read from.
    """
    try:
        found = group.get(name)
    except (ValueError, KeyError, TypeError) as error:
        # an unknown codec or type; JSON that was cut
        raise StoreError(
            f"{where}/{name} describes no array ({error}); restore it from a copy"
        ) from error
    if not isinstance(found, zarr.Array):
        raise StoreError(f"{where} has no array {name}; restore it from a copy")
    return found


def chunk_path(name: str, spec: ArraySpec, index: int = 0) -> str:
    """Path of a chunk in its group.

    Examples
    --------
    >>> chunk_path("pair_counts", ArraySpec((3, 5, 7), (1, 5, 7)), 2)
    'pair_counts/c.2.0.0'
    """
    return ".".join([f"{name}/c", str(index), *("0" for _ in spec.shape[1:])])


def magnitude(array: NDArray[np.int64]) -> int:
    """Largest magnitude of an entry, 0 without entries."""
    return max(int(array.max()), -int(array.min())) if array.size else 0


def _create_group(
    files: dict[str, Buffer], specs: Mapping[str, ArraySpec], attributes: Mapping[str, Any]
) -> dict[str, zarr.Array[Any]]:
    group = zarr.create_group(MemoryStore(files), zarr_format=3, attributes=dict(attributes))
    return {
        name: group.create_array(
            name,
            shape=spec.shape,
            chunks=spec.chunks,
            dtype=spec.dtype,
            serializer=BytesCodec(),
            compressors=[_COUNTS, Crc32cCodec()] if spec.compressed else [Crc32cCodec()],
            fill_value=0,
            dimension_names=spec.dimensions,
            # one folder for an array, not one for a chunk
            chunk_key_encoding={"name": "default", "separator": "."},
            # a chunk of zeros that is not written could not be told from one that is lost
            config={"write_empty_chunks": True},
        )
        for name, spec in specs.items()
    }
