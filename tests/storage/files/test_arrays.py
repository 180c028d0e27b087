"""Arrays encoded and decoded without Zarr are equal to Zarr's."""

import json

import numpy as np
import pytest
import zarr
import zarr.codecs
import zarr.storage

from streaming_moments.errors import StoreError
from streaming_moments.storage.files import arrays
from streaming_moments.storage.files.arrays import (
    ArraySpec,
    StoredGroup,
    chunk_path,
    encode_chunks,
    encode_metadata,
    read_whole,
)

BLOCKS = 3
SPECS = {
    "pairs": ArraySpec((BLOCKS, 50, 7), (1, 50, 7), dimensions=("block", "row", "pairs_2")),
    "sketch": ArraySpec((BLOCKS, 4), (1, 4), compressed=False),
    "large": ArraySpec((BLOCKS, 400_000), (1, 400_000)),
    "weights": ArraySpec.whole(np.zeros(5), "weights"),
    "nothing": ArraySpec.whole(np.zeros((0, 2)), "nothing"),
    **{
        dtype: ArraySpec((BLOCKS, 9), (1, 9), dtype)
        for dtype in ("bool", "int8", "uint16", "int32", "float32", "float64", "uint64")
    },
}
TOLD = {"alpha": [0.5, float("nan")], "name": "é", "none": None}


def entries_of(spec):
    drawn = np.random.default_rng(1).integers(0, 100, spec.shape)
    return drawn.astype(spec.dtype)


ENTRIES = {name: entries_of(spec) for name, spec in SPECS.items()}


def written_here():
    files = encode_metadata(SPECS, TOLD)
    for index in range(BLOCKS):
        cut = {name: ENTRIES[name][index : index + 1] for name in SPECS if name not in WHOLES}
        files |= encode_chunks(SPECS, cut, index)
    return files | encode_chunks(SPECS, {name: ENTRIES[name] for name in WHOLES})


WHOLES = ("weights", "nothing")


def written_by_zarr(compressor=None, specs=SPECS):
    files = {}
    group = zarr.create_group(zarr.storage.MemoryStore(files), zarr_format=3, attributes=TOLD)
    counts = zarr.codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle")
    for name, spec in specs.items():
        compression = [compressor or counts] if spec.compressed else []
        array = group.create_array(
            name,
            shape=spec.shape,
            chunks=spec.chunks,
            dtype=spec.dtype,
            serializer=zarr.codecs.BytesCodec(),
            compressors=[*compression, zarr.codecs.Crc32cCodec()],
            fill_value=0,
            dimension_names=spec.dimensions,
            chunk_key_encoding={"name": "default", "separator": "."},
            config={"write_empty_chunks": True},
        )
        array[...] = ENTRIES[name]
    return {path: content.to_bytes() for path, content in files.items()}


def test_the_files_are_those_that_zarr_writes():
    here, there = written_here(), written_by_zarr()
    assert here.keys() == there.keys()
    assert [path for path in here if here[path] != there[path]] == []


def require_read(group):
    for name, spec in SPECS.items():
        if name in WHOLES:
            np.testing.assert_array_equal(group.whole(name), ENTRIES[name])
            continue
        for index in range(BLOCKS):
            found = group.chunk(name, spec, index)
            np.testing.assert_array_equal(found, ENTRIES[name][index : index + 1])
            assert (found.dtype, found.flags.writeable) == (spec.dtype, True)


def test_what_is_written_here_is_read_without_zarr(monkeypatch):
    monkeypatch.setattr(arrays, "decode", None)
    require_read(StoredGroup(written_here(), "here"))
    small = {name: SPECS[name] for name in WHOLES}
    content = {name: ENTRIES[name] for name in WHOLES}
    read, told = read_whole({**encode_metadata(small, TOLD), **encode_chunks(small, content)}, "")
    assert json.dumps(told) == json.dumps(TOLD)
    assert all((read[name] == ENTRIES[name]).all() for name in WHOLES)


def test_what_zarr_compresses_otherwise_is_read():
    require_read(StoredGroup(written_by_zarr(zarr.codecs.ZstdCodec(level=1)), "there"))


CHUNK = chunk_path("pairs", SPECS["pairs"], 1)


def cut(content):
    return content[:-7]


def flipped(content):
    return content[:30] + bytes([content[30] ^ 1]) + content[31:]


def of_another_size(content):
    """Compress and checksum correctly, but with fewer entries."""
    spec = ArraySpec((BLOCKS, 49, 7), (1, 49, 7))
    return encode_chunks({"pairs": spec}, {"pairs": ENTRIES["pairs"][:1, :49]})["pairs/c.0.0.0"]


@pytest.mark.parametrize("damage", [cut, flipped, of_another_size])
def test_a_damaged_chunk_is_named(damage):
    files = written_here()
    files[CHUNK] = damage(files[CHUNK])
    group = StoredGroup(files, "here")
    with pytest.raises(StoreError, match="here/pairs cannot be decoded"):
        group.chunk("pairs", SPECS["pairs"], 1)
    np.testing.assert_array_equal(group.chunk("pairs", SPECS["pairs"], 0), ENTRIES["pairs"][:1])


def test_arrays_of_another_shape_and_groups_that_are_none_are_refused():
    group = StoredGroup(written_here(), "here")
    with pytest.raises(
        StoreError, match=r"here/pairs has shape \(3, 50, 7\) and type int64 instead"
    ):
        group.chunk("pairs", ArraySpec((3, 50, 8), (1, 50, 8)), 0)
    with pytest.raises(StoreError, match="has no array other"):
        group.whole("other")
    with pytest.raises(StoreError, match="here is not a Zarr group"):
        StoredGroup({}, "here").whole("pairs")
    foreign = {**written_here(), "zarr.json": b"{"}
    with pytest.raises(StoreError, match="here is not a Zarr group"):
        StoredGroup(foreign, "here").chunk("pairs", SPECS["pairs"], 0)
