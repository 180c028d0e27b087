"""Zarr v3 arrays as files in memory: encoded and decoded here, folders move the bytes.

The bytes that are hashed are so the very bytes that are written and read, on every storage.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import StoreError
from streaming_moments.lazy_imports import LazyModule

if TYPE_CHECKING:
    import numcodecs.blosc as blosc
    import zarr
    import zarr.core.buffer.cpu as cpu
    import zarr.storage as stores
    from zarr.core.buffer import Buffer
else:
    blosc = LazyModule("numcodecs.blosc")
    zarr = LazyModule("zarr")
    cpu = LazyModule("zarr.core.buffer.cpu")
    stores = LazyModule("zarr.storage")

_Read = TypeVar("_Read")

_GROUP = "zarr.json"
_KINDS = "biuf"  # of numbers that are read without Zarr
_CHECK = 4  # bytes of a CRC-32C
_SIZE = slice(4, 8)  # of what blosc has compressed: the bytes that it was


@dataclass(frozen=True)
class ArraySpec:
    """How an array is stored.

    chunks : shape of a chunk
    compressed : whether bytes are shuffled and compressed by LZ4; every chunk ends with its CRC-32C
        either way
    dimensions : names of the axes, by which xarray opens the group
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
    """Files that describe a group and its arrays, by path; to the letter as Zarr writes them."""
    described: dict[str, Any] = {_GROUP: _described_group(dict(attributes))}
    for name, spec in specs.items():
        described[f"{name}/{_GROUP}"] = _described(spec)
    return {path: json.dumps(one, indent=2).encode() for path, one in described.items()}


def encode_chunks(
    specs: Mapping[str, ArraySpec], chunks: Mapping[str, NDArray[Any]], index: int = 0
) -> dict[str, bytes]:
    """Encode the chunks at place `index` of the first axis as files, by path; the bytes are Zarr's.

    Zarr itself takes ten times as long, most of it to hand each small chunk to another thread. The
    chunks span all axes but the first: pass a whole chunk, or all of an array of one chunk.
    """
    files = {}
    for name, entries in chunks.items():
        if entries.size:
            spec = specs[name]
            place = 0 if spec.shape == entries.shape else index
            files[chunk_path(name, spec, place)] = _encoded(entries, spec)
    return files


@dataclass(frozen=True)
class StoredGroup:
    """Arrays of a group, as files in memory by path; `where` names their source in errors.

    Files as this package writes them are decoded without Zarr, which takes longer to load than the
    files to read. All others are decoded by Zarr.
    """

    files: Mapping[str, bytes]
    where: str

    def chunk(self, name: str, spec: ArraySpec, index: int) -> NDArray[Any]:
        """Read the chunk at place `index` of the first axis; the caller may change the array."""
        found = self.attempt(lambda: _chunk(self.files, name, spec, index))
        if found is not None:
            return found
        stored = array_in(self.group, name, self.where)
        if (stored.shape, stored.chunks, str(stored.dtype)) != (
            spec.shape,
            spec.chunks,
            spec.dtype,
        ):
            raise StoreError(
                f"{self.where}/{name} is {stored.shape} of {stored.dtype} instead of {spec.shape} "
                "of int64; restore it from a copy"
            )
        return self._entries(name, slice(index, index + 1))

    def whole(self, name: str) -> NDArray[Any]:
        """All entries of an array; raises as `chunk`."""
        found = self.attempt(lambda: _whole(self.files, name))
        return self._entries(name, slice(None)) if found is None else found

    def attempt(self, read: Callable[[], _Read]) -> _Read | None:
        """What is read without Zarr; None where anything is not to the letter as written here."""
        try:
            return read() if self._is_plain else None
        except (KeyError, TypeError, ValueError, RuntimeError):
            return None

    def _entries(self, name: str, selection: slice) -> NDArray[Any]:
        stored = array_in(self.group, name, self.where)
        try:
            return np.asarray(stored[selection])
        except (ValueError, RuntimeError) as error:
            raise StoreError(
                f"{self.where}/{name} cannot be decoded ({error}); restore it from a copy"
            ) from error

    @cached_property
    def _is_plain(self) -> bool:
        group = json.loads(self.files[_GROUP])
        return bool(group == _described_group(group["attributes"]))

    @cached_property
    def group(self) -> zarr.Group:
        """As Zarr reads it; raises as `decode`."""
        return decode(self.files, self.where)


def decode(files: Mapping[str, bytes], where: str) -> zarr.Group:
    """Open the files as a Zarr group, whose arrays read what the files hold."""
    buffers: dict[str, Buffer] = {
        path: cpu.Buffer.from_bytes(content) for path, content in files.items()
    }
    try:
        return zarr.open_group(stores.MemoryStore(buffers, read_only=True), mode="r", zarr_format=3)
    except (ValueError, KeyError, TypeError, FileNotFoundError) as error:
        raise StoreError(f"{where} is no Zarr group ({error}); restore it from a copy") from error


def array_in(group: zarr.Group, name: str, where: str) -> zarr.Array[Any]:
    """Look up an array of a decoded group; raises StoreError if it is missing or unreadable."""
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
    """Read all arrays of a group, each of one chunk, by name; and the attributes of the group.

    Files as this package writes them are decoded without Zarr, which takes longer to load than the
    files to read.
    """
    stored = StoredGroup(files, where)
    found = stored.attempt(lambda: {name: _whole(files, name) for name in _names_in(files)})
    if found is not None:
        return found, json.loads(files[_GROUP])["attributes"]
    group = stored.group
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
    places = (index, *(0 for _ in spec.shape))[: len(spec.shape)]
    return ".".join([f"{name}/c", *map(str, places)])


def magnitude(array: NDArray[np.int64]) -> int:
    """Largest magnitude of an entry, 0 without entries."""
    return max(int(array.max()), -int(array.min())) if array.size else 0


def _names_in(files: Mapping[str, bytes]) -> list[str]:
    return [path.removesuffix(f"/{_GROUP}") for path in files if path.endswith(f"/{_GROUP}")]


def _whole(files: Mapping[str, bytes], name: str) -> NDArray[Any]:
    """All of an array of one chunk."""
    described = json.loads(files[f"{name}/{_GROUP}"])
    shape, dtype = tuple(described["shape"]), described["data_type"]
    spec = ArraySpec(shape, tuple(max(1, size) for size in shape), dtype)
    return _chunk(files, name, spec, 0)


def _chunk(files: Mapping[str, bytes], name: str, spec: ArraySpec, index: int) -> NDArray[Any]:
    """A chunk of an array; a ValueError where the array is not described as here, or damaged."""
    import google_crc32c

    described = json.loads(files[f"{name}/{_GROUP}"])
    described.pop("dimension_names", None)  # which are for other readers
    if np.dtype(spec.dtype).kind not in _KINDS or described != _described(spec, named=False):
        raise ValueError(name)
    if not all(spec.shape):
        return np.zeros(spec.shape, spec.dtype)
    stored = files[chunk_path(name, spec, index)]
    content, check = stored[:-_CHECK], stored[-_CHECK:]
    if google_crc32c.value(content) != int.from_bytes(check, "little"):
        raise ValueError(name)
    found = np.empty(spec.chunks, _little(spec.dtype))
    if spec.compressed:
        # blosc would leave the rest of it as it is
        if int.from_bytes(content[_SIZE], "little") != found.nbytes:
            raise ValueError(name)
        blosc.decompress(content, found)
    else:
        found[...] = np.frombuffer(content, found.dtype).reshape(found.shape)
    return found


def _encoded(entries: NDArray[Any], spec: ArraySpec) -> bytes:
    """The bytes of a chunk."""
    import google_crc32c
    import numcodecs.blosc as compressor

    # as Zarr has it: threads would write the parts of a chunk in the order in which they are done
    compressor.use_threads = False
    whole = np.ascontiguousarray(entries, dtype=_little(spec.dtype)).reshape(spec.chunks)
    if spec.compressed:
        # Most counts need one byte of eight: the others side by side are zeros. Four times as fast
        # as zstd at level 1, both ways, and its files a fifth larger.
        content: bytes = compressor.compress(whole, b"lz4", 5, compressor.SHUFFLE, 0)
    else:
        content = whole.tobytes()
    check: int = google_crc32c.value(content)
    return content + check.to_bytes(_CHECK, "little")


def _little(dtype: str) -> np.dtype[Any]:
    return np.dtype(dtype).newbyteorder("<")


def _described_group(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {"attributes": attributes, "zarr_format": 3, "node_type": "group"}


def _described(spec: ArraySpec, named: bool = True) -> dict[str, Any]:
    """The metadata of an array, with the names of its axes, if it has any."""
    dtype = np.dtype(spec.dtype)
    order = {"configuration": {"endian": "little"}} if dtype.itemsize > 1 else {}
    counts = {"typesize": dtype.itemsize, "cname": "lz4", "clevel": 5, "shuffle": "shuffle"}
    compression = {"name": "blosc", "configuration": {**counts, "blocksize": 0}}
    names = {"dimension_names": [*spec.dimensions]} if named and spec.dimensions else {}
    return {
        "shape": [*spec.shape],
        "data_type": spec.dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [*spec.chunks]}},
        # one folder for an array, not one for a chunk
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": dtype.type(0).item(),
        "codecs": [
            {"name": "bytes", **order},
            *([compression] if spec.compressed else []),
            {"name": "crc32c"},
        ],
        "attributes": {},
        **names,
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }
