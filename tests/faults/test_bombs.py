"""Shards that are small on disk and huge once unpacked: refused, or read, in bounded memory."""

import bz2
import gzip
import json
import lzma
import subprocess
import sys
import zipfile
import zlib
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MEBIBYTE = 1 << 20
BUDGET = 384 * MEBIBYTE  # address space for reading, on top of what imports take
BATCHES = 5  # of a shard; what is bounded for so many stays so

READ = """
import json, resource, sys
from streaming_moments.errors import ShardError
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.counting.reading import read_shard
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.statistics.counts.vocabulary import Vocabulary

budget, batches, warm, *urls = sys.argv[1:]
limits = ReadLimits(8 << 20, 8 << 20, row_group_bytes=32 << 20)
policy = TokenPolicy()
words = Vocabulary(("law", "sea"), 1, policy.fingerprint)
ids = Vocabulary(("one", "two"), 1, token_ids=(1, 2))

def read(place):
    [shard] = list_shards([place])
    form = ShardFormat(ids_column="ids" if place.endswith("ids.parquet") else None)
    one, two = (ids, None) if form.holds(shard.url) == "ids" else (words, policy)
    try:
        for number, _ in enumerate(read_shard(shard, form, one, two, limits), start=1):
            if number == int(batches):
                break
    except (ShardError, MemoryError) as error:
        return f"{type(error).__name__}: {error}"
    return "read"

# kernels are compiled and libraries loaded before the limit is set
for place in warm.split(","):
    read(place)
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + int(budget),) * 2)
print(json.dumps([read(url) for url in urls]))
"""


def written(path, column, **options):
    name = "ids" if pa.types.is_list(column.type) else "text"
    pq.write_table(pa.table({name: column}), path, compression="zstd", **options)
    return path


def repeated(text, times):
    """A column of one text, held and stored once."""
    return pa.DictionaryArray.from_arrays(np.zeros(times, np.int32), pa.array([text]))


def text_bomb(path, opened, unit=b"a" * MEBIBYTE, times=128, head=b""):
    """Compressed unit by unit: what it unpacks to would take a second to clear memory for."""
    with opened(path) as bomb:
        bomb.write(head)
        for _ in range(times):
            bomb.write(unit)
    return path


# the same bombs in less time: what they unpack to is what counts
gzipped = partial(gzip.open, mode="wb", compresslevel=1)
xz = partial(lzma.open, mode="wb", preset=1)
bzipped = partial(bz2.open, mode="wb")


def zstd(path):
    return pa.CompressedOutputStream(str(path), "zstd")


def with_content(path, content):
    path.write_bytes(content)
    return path


def greedy_xz(content):
    """An xz stream whose dictionary is said to take 4 GiB."""
    made = bytearray(lzma.compress(content))
    header = made[12 : 12 + 4 * (made[12] + 1)]
    dictionary = header.index(b"\x21\x01") + 2  # of LZMA2, with one byte of properties
    header[dictionary] = 40
    header[-4:] = zlib.crc32(header[:-4]).to_bytes(4, "little")
    made[12 : 12 + len(header)] = header
    return bytes(made)


def zip_bomb(path, unit, times=1, members=1):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(members):
            with archive.open(f"{number}.txt", "w") as member:
                for _ in range(times):
                    member.write(unit)
    return path


LONG_TEXT = "a" * (4 * MEBIBYTE)


def long_texts():
    """Of them 64, which Arrow makes of a list in a second."""
    return repeated(LONG_TEXT, 64).cast(pa.string())


TOO_LONG = "exceeds 8388608 bytes; split the document, or raise --max-document-bytes"
TOO_LARGE = "smaller row groups, or raise --max-row-group-bytes"
REFUSED = {
    "a.txt.gz": (lambda p: text_bomb(p, gzipped), TOO_LONG),
    "a.txt.zst": (lambda p: text_bomb(p, zstd, b"\0" * MEBIBYTE, 256), TOO_LONG),
    "a.jsonl.zst": (lambda p: text_bomb(p, zstd), TOO_LONG),
    "a.ldac.bz2": (lambda p: text_bomb(p, bzipped, b"1" * MEBIBYTE, 16), TOO_LONG),
    "a.txt.xz": (lambda p: text_bomb(p, xz, times=16), TOO_LONG),
    "greedy.txt.xz": (
        lambda p: with_content(p, greedy_xz(b"law\n" * 9)),
        "dictionary of at most 64 MiB",
    ),
    "quoted.csv.gz": (
        lambda p: text_bomb(p, gzipped, b"\n" * MEBIBYTE, 64, b'text\n"'),
        TOO_LONG,
    ),
    "header.csv.gz": (lambda p: text_bomb(p, gzipped, b"," * MEBIBYTE), TOO_LONG),
    "columns.csv.xz": (
        lambda p: text_bomb(p, xz, b"," * MEBIBYTE + b"\n", 1),
        "a header has at most 4096 fields and 65536 bytes; write the names",
    ),
    "a.zip": (lambda p: zip_bomb(p, b"a" * MEBIBYTE, 64), TOO_LONG),
    "folder/a.gz": (lambda p: text_bomb(p, gzipped).parent, TOO_LONG),
    "column.parquet": (
        lambda p: written(p, long_texts(), use_dictionary=False, write_statistics=False),
        TOO_LARGE,
    ),
    "megabytes.parquet": (
        lambda p: written(p, pa.array([f"{i}" + "law " * (MEBIBYTE // 4) for i in range(100)])),
        TOO_LARGE,
    ),
    "ids.parquet": (
        lambda p: written(p, pa.array([np.zeros(40_000_000, np.int64)])),
        TOO_LARGE,
    ),
    "long.parquet": (lambda p: written(p, repeated(LONG_TEXT * 3, 1000)), TOO_LONG),
}
READ_WHOLE = {
    "newlines.txt.zst": lambda p: text_bomb(p, zstd, b"\n" * MEBIBYTE, 256),
    "members.zip": lambda p: zip_bomb(p, b"law " * MEBIBYTE, members=64),
    "newlines.txt.xz": lambda p: text_bomb(p, xz, b"\n" * MEBIBYTE, 48),
    "streams.txt.xz": lambda p: with_content(p, lzma.compress(b"law sea\n" * 128, preset=9) * 9),
    "records.csv.zst": lambda p: text_bomb(p, zstd, b'""\n' * MEBIBYTE, 64, b"text\n"),
    "beside.csv.zst": lambda p: text_bomb(
        p, zstd, b"a" * (MEBIBYTE // 2) + b",law\n", 13 * 64, b"n,text\n"
    ),
    "long.csv.zst": lambda p: text_bomb(p, zstd, b'text\n"' + b"a\n" * MEBIBYTE + b'"\n', 64),
    "wide.csv.zst": lambda p: text_bomb(p, zstd, b"text" + 16_000 * (b"," * 4_000 + b"\n"), 1),
    "dictionary.parquet": lambda p: written(p, repeated(LONG_TEXT, 1000)),
    "prefixes.parquet": lambda p: written(
        p,
        long_texts(),
        use_dictionary=False,
        column_encoding={"text": "DELTA_BYTE_ARRAY"},
    ),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What reading each bomb ended with, in one process of little memory."""
    folder = tmp_path_factory.mktemp("bombs")
    makers = {**{name: make for name, (make, _) in REFUSED.items()}, **READ_WHOLE}
    urls = []
    for number, (name, make) in enumerate(makers.items()):
        place = folder / str(number) / name
        place.parent.mkdir(parents=True)
        urls.append(make(place))
        assert place.stat().st_size < MEBIBYTE
    warm = written(folder / "warm.parquet", pa.array(["law and sea"]))
    warm_csv = text_bomb(folder / "warm.csv.xz", xz, b"text\nlaw\n", 1)
    arguments = [sys.executable, "-c", READ, BUDGET, BATCHES, f"{warm},{warm_csv}", *urls]
    done = subprocess.run(list(map(str, arguments)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return dict(zip(makers, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("name", REFUSED)
def test_a_bomb_is_refused_with_the_option_that_raises_the_limit(outcomes, name):
    assert outcomes[name].startswith("ShardError: ")
    assert REFUSED[name][1] in outcomes[name]


@pytest.mark.parametrize("name", READ_WHOLE)
def test_what_unpacks_to_gigabytes_of_documents_is_read_in_little_memory(outcomes, name):
    assert outcomes[name] == "read"
