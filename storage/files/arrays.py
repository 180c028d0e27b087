"""Encode and decode Zarr v3 arrays as files in memory; the bytes are written and read elsewhere.

So a hash of these bytes is a hash of exactly what is written and read, on every storage.
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
from streaming_moments.storage.lazy_libraries import blosc, cpu, stores, zarr

if TYPE_CHECKING:
    from zarr.core.buffer import Buffer

_Read = TypeVar("_Read")

_GROUP = "zarr.json"
_KINDS = "biuf"  # booleans, integers and floats: arrays of these types are read without Zarr
_CHECK = 4  # size of a CRC-32C in bytes
_SIZE = slice(4, 8)  # where the header of a blosc chunk has the decompressed size


@dataclass(frozen=True)
class ArraySpec:
    """How an array is stored.

    chunks : shape of a chunk
    compressed : whether the bytes of a chunk are shuffled and compressed by LZ4; in any case a
        chunk ends with its CRC-32C
    dimensions : names of the axes, which xarray shows
    """

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: str = "int64"
    compressed: bool = True
    dimensions: tuple[str, ...] | None = None

    @classmethod
    def whole(cls, array: NDArray[Any], name: str = "") -> ArraySpec:
        """Return the specification of an array with one chunk; names of axes begin with `name`."""
        chunks = tuple(max(1, size) for size in array.shape)
        dimensions = tuple(f"{name}_{axis}" for axis in range(array.ndim)) if name else None
        return cls(array.shape, chunks, str(array.dtype), dimensions=dimensions)


def encode_metadata(
    specs: Mapping[str, ArraySpec], attributes: Mapping[str, Any]
) -> dict[str, bytes]:
    """Return the metadata files of a group and its arrays, by path, exactly as Zarr writes them."""
    described: dict[str, Any] = {_GROUP: _described_group(dict(attributes))}
    for name, spec in specs.items():
        described[f"{name}/{_GROUP}"] = _described(spec)
    return {path: json.dumps(one, indent=2).encode() for path, one in described.items()}


def encode_chunks(
    specs: Mapping[str, ArraySpec], chunks: Mapping[str, NDArray[Any]], index: int = 0
) -> dict[str, bytes]:
    """Return the files of chunks, by path, exactly as Zarr writes them.

    `chunks` has one chunk of each array: the one at place `index` of the first axis. It spans all
    other axes; an array of one chunk is given whole. Zarr would take ten times as long, mostly to
    pass each small chunk to another thread.
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
    """Reads arrays of a Zarr group, whose files are in memory, by path; errors name it `where`.

    Files as this package writes them are decoded without Zarr, because to import Zarr takes longer
    than to read the files. Zarr decodes all other files.
    """

    files: Mapping[str, bytes]
    where: str

    def chunk(self, name: str, spec: ArraySpec, index: int) -> NDArray[Any]:
        """Read the chunk at place `index` of the first axis; the caller may change the result."""
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
                f"{self.where}/{name} has shape {stored.shape} and type {stored.dtype} instead of "
                f"{spec.shape} and int64; restore it from a copy"
            )
        return self._entries(name, slice(index, index + 1))

    def whole(self, name: str) -> NDArray[Any]:
        """Read all entries of an array; raises as `chunk` does."""
        found = self.attempt(lambda: _whole(self.files, name))
        return self._entries(name, slice(None)) if found is None else found

    def attempt(self, read: Callable[[], _Read]) -> _Read | None:
        """Call `read`, which decodes without Zarr; None if this package did not write the file."""
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
        """The group as Zarr opens it; raises as `decode` does."""
        return decode(self.files, self.where)


def decode(files: Mapping[str, bytes], where: str) -> zarr.Group:
    """Open files in memory as a Zarr group; raise StoreError if they are not one."""
    buffers: dict[str, Buffer] = {
        path: cpu.Buffer.from_bytes(content) for path, content in files.items()
    }
    try:
        return zarr.open_group(stores.MemoryStore(buffers, read_only=True), mode="r", zarr_format=3)
    except (ValueError, KeyError, TypeError, FileNotFoundError) as error:
        raise StoreError(
            f"{where} is not a Zarr group ({error}); restore it from a copy"
        ) from error


def array_in(group: zarr.Group, name: str, where: str) -> zarr.Array[Any]:
    """Look up an array of a decoded group; raises StoreError if it is missing or unreadable."""
    try:
        found = group.get(name)
    except (ValueError, KeyError, TypeError) as error:
        # the codec or type of the array is unknown, or its JSON is cut off
        raise StoreError(
            f"{where}/{name} is not a valid array ({error}); restore it from a copy"
        ) from error
    if not isinstance(found, zarr.Array):
        raise StoreError(f"{where} has no array {name}; restore it from a copy")
    return found


def read_whole(
    files: Mapping[str, bytes], where: str
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read all arrays of a group by name, each with one chunk, and the attributes of the group.

    Files as this package writes them are decoded without Zarr, because to import Zarr takes longer
    than to read the files.
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
    """Return the path, within its group, of the chunk at place `index` of the first axis.

    Examples
    --------
    >>> chunk_path("pair_counts", ArraySpec((3, 5, 7), (1, 5, 7)), 2)
    'pair_counts/c.2.0.0'
    """
    places = (index, *(0 for _ in spec.shape))[: len(spec.shape)]
    return ".".join([f"{name}/c", *map(str, places)])


def magnitude(array: NDArray[np.int64]) -> int:
    """Return the largest absolute value of the entries of an array; 0 for an empty array."""
    return max(int(array.max()), -int(array.min())) if array.size else 0


def _names_in(files: Mapping[str, bytes]) -> list[str]:
    return [path.removesuffix(f"/{_GROUP}") for path in files if path.endswith(f"/{_GROUP}")]


def _whole(files: Mapping[str, bytes], name: str) -> NDArray[Any]:
    """Read an array that has one chunk."""
    described = json.loads(files[f"{name}/{_GROUP}"])
    shape, dtype = tuple(described["shape"]), described["data_type"]
    spec = ArraySpec(shape, tuple(max(1, size) for size in shape), dtype)
    return _chunk(files, name, spec, 0)


def _chunk(files: Mapping[str, bytes], name: str, spec: ArraySpec, index: int) -> NDArray[Any]:
    """Read a chunk of an array; raise ValueError if it is damaged, or has other metadata."""
    import google_crc32c

    described = json.loads(files[f"{name}/{_GROUP}"])
    # ignore the names of the axes, which are for other readers such as xarray
    described.pop("dimension_names", None)
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
        # check the decompressed size first: if it is too small, blosc would leave the rest of the
        # array uninitialised
        if int.from_bytes(content[_SIZE], "little") != found.nbytes:
            raise ValueError(name)
        blosc.decompress(content, found)
    else:
        found[...] = np.frombuffer(content, found.dtype).reshape(found.shape)
    return found


def _encoded(entries: NDArray[Any], spec: ArraySpec) -> bytes:
    """Encode a chunk."""
    import google_crc32c
    import numcodecs.blosc as compressor

    # use one thread, as Zarr does: several threads would write the parts of a chunk in random order
    compressor.use_threads = False
    whole = np.ascontiguousarray(entries, dtype=_little(spec.dtype)).reshape(spec.chunks)
    if spec.compressed:
        # Most counts need only one of their eight bytes, and shuffling puts the zeros of the other
        # bytes together. Compared to zstd at level 1, LZ4 takes a quarter of the time, and its
        # files are a fifth larger.
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
    """Return the metadata of an array, with the names of its axes if `named`."""
    dtype = np.dtype(spec.dtype)
    order = {"configuration": {"endian": "little"}} if dtype.itemsize > 1 else {}
    counts = {"typesize": dtype.itemsize, "cname": "lz4", "clevel": 5, "shuffle": "shuffle"}
    compression = {"name": "blosc", "configuration": {**counts, "blocksize": 0}}
    names = {"dimension_names": [*spec.dimensions]} if named and spec.dimensions else {}
    return {
        "shape": [*spec.shape],
        "data_type": spec.dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [*spec.chunks]}},
        # put all chunks of an array into one folder
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
