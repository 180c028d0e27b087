"""Zarr v3 arrays as files in memory: Zarr encodes and decodes, folders move the bytes.

The bytes that are hashed are so the very bytes that are written and read, on every storage.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import StoreError
from streaming_moments.lazy_imports import LazyModule

if TYPE_CHECKING:
    import numcodecs.blosc as blosc
    import zarr
    import zarr.codecs as codecs
    import zarr.core.buffer.cpu as cpu
    import zarr.storage as stores
    from zarr.core.buffer import Buffer
else:
    blosc = LazyModule("numcodecs.blosc")
    zarr = LazyModule("zarr")
    codecs = LazyModule("zarr.codecs")
    cpu = LazyModule("zarr.core.buffer.cpu")
    stores = LazyModule("zarr.storage")


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
        return zarr.open_group(stores.MemoryStore(buffers, read_only=True), mode="r", zarr_format=3)
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


def read_whole(
    files: Mapping[str, bytes], where: str
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """All arrays of a group, each of one chunk, by name; and the attributes of the group.

    Where all is as this package writes it, the codecs are called without Zarr, which takes longer
    to load than the files to read.

    Raises
    ------
    StoreError
        Files that describe no group or no array, or that cannot be decoded.
    """
    found = _read_quickly(files)
    if found is not None:
        return found
    group = decode(files, where)
    try:
        names = list(group.array_keys())
        return {name: np.asarray(array_in(group, name, where)[...]) for name in names}, dict(
            group.attrs
        )
    except (ValueError, RuntimeError) as error:
        raise StoreError(f"{where} cannot be decoded ({error}); restore it from a copy") from error


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
    # Most counts need one byte of eight: the others side by side are zeros. Four times as fast as
    # zstd at level 1, both ways, and its files a fifth larger.
    counts = codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle")
    group = zarr.create_group(stores.MemoryStore(files), zarr_format=3, attributes=dict(attributes))
    return {
        name: group.create_array(
            name,
            shape=spec.shape,
            chunks=spec.chunks,
            dtype=spec.dtype,
            serializer=codecs.BytesCodec(),
            compressors=[counts, codecs.Crc32cCodec()]
            if spec.compressed
            else [codecs.Crc32cCodec()],
            fill_value=0,
            dimension_names=spec.dimensions,
            # one folder for an array, not one for a chunk
            chunk_key_encoding={"name": "default", "separator": "."},
            # a chunk of zeros that is not written could not be told from one that is lost
            config={"write_empty_chunks": True},
        )
        for name, spec in specs.items()
    }


def _read_quickly(
    files: Mapping[str, bytes],
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
    """As `read_whole`; None where anything is not to the letter what is written here."""
    try:
        group = json.loads(files["zarr.json"])
        if group != {"attributes": group["attributes"], "zarr_format": 3, "node_type": "group"}:
            return None
        names = [path.removesuffix("/zarr.json") for path in files if path.endswith("/zarr.json")]
        return {name: _whole(files, name) for name in names}, group["attributes"]
    except (KeyError, TypeError, ValueError, RuntimeError):
        return None


def _whole(files: Mapping[str, bytes], name: str) -> NDArray[Any]:
    import google_crc32c

    described = json.loads(files[f"{name}/zarr.json"])
    described.pop("dimension_names", None)  # which are for other readers
    shape, dtype = tuple(described["shape"]), described["data_type"]
    spec = ArraySpec(shape, shape, dtype)
    if dtype not in ("int64", "float64") or described != _described(spec):
        raise ValueError(name)
    stored = files[chunk_path(name, spec)]
    if google_crc32c.value(stored[:-4]) != int.from_bytes(stored[-4:], "little"):
        raise ValueError(name)
    return np.frombuffer(blosc.decompress(stored[:-4]), dtype=f"<{dtype[0]}8").reshape(shape)


def _described(spec: ArraySpec) -> dict[str, Any]:
    """The metadata of a compressed array of one chunk."""
    blosc = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 0, "typesize": 8}
    return {
        "shape": [*spec.shape],
        "data_type": spec.dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [*spec.chunks]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": 0,
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "blosc", "configuration": blosc},
            {"name": "crc32c"},
        ],
        "attributes": {},
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }
