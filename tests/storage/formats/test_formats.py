"""Laws of all formats. A new format needs a line here that writes it."""

import itertools
import json
import uuid
from dataclasses import replace
from datetime import date
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_shards import (
    COMPRESS,
    IDS_AS,
    TERM_IDS,
    TERMS,
    TEXTS_AS,
    WRITTEN,
    parquet,
    put,
    put_as,
    rows,
    vocabulary_for,
)

from streaming_moments.errors import ShardError
from streaming_moments.statistics.counts.batch import concatenate
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.reading import read_shard
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.dates import DateRange, DateSource
from streaming_moments.storage.documents import days_of, share_before
from streaming_moments.storage.formats import COMPRESSIONS, FORMATS, START, Format, ReadLimits
from streaming_moments.storage.shards import ShardFormat, files_of

POLICY = TokenPolicy(1)
OF_IDS = Vocabulary(TERMS, core=2, token_ids=TERM_IDS)
FORM = ShardFormat()
# Formats without documents, tested in tests/storage/counting/test_vectors.py.
TABLES = ("npy", "arrow", "zarr")
FORM_OF_IDS = ShardFormat(ids_column="ids", counts_column="counts")
documents = st.lists(
    st.lists(st.sampled_from(TERMS), max_size=6).map(" ".join), min_size=2, max_size=14
).filter(any)
limits = st.builds(
    lambda nbytes, number: ReadLimits(batch_bytes=nbytes, batch_documents=number),
    st.integers(1, 60),
    st.integers(1, 5),
)


def written(kind, held, suffix, texts):
    """Write a shard of a format, and return it with the arguments of `read_shard`."""
    shard = put_as(kind, held, suffix, f"memory:///{uuid.uuid4().hex}", texts)
    if held == "ids":
        return shard, FORM_OF_IDS, OF_IDS, None
    return shard, FORM, vocabulary_for(POLICY), POLICY


def test_every_format_and_every_compression_is_written_here():
    assert {*TEXTS_AS, *IDS_AS, *TABLES} == FORMATS.keys()
    assert set(COMPRESS) == {"", *(compression.suffix for compression in COMPRESSIONS)}
    for kind, held, suffix in WRITTEN:
        shard, form, *_ = written(kind, held, suffix, ["sea law"])
        assert form.kind_of(shard.url) == kind
        assert form.holds(shard.url) == held


def test_no_two_formats_have_a_suffix_in_common():
    suffixes = list(itertools.chain(*(form.suffixes for form in FORMATS.values())))
    suffixes += [compression.suffix for compression in COMPRESSIONS]
    assert len(set(suffixes)) == len(suffixes)


def test_the_page_on_shards_names_every_suffix():
    page = (Path(__file__).parents[3] / "docs" / "reference" / "shards.md").read_text()
    suffixes = [*itertools.chain(*(form.suffixes for form in FORMATS.values()))]
    for suffix in [*suffixes, *(compression.suffix for compression in COMPRESSIONS)]:
        assert f"`{suffix}`" in page, suffix


@settings(max_examples=20)
@given(documents, limits)
def test_the_same_documents_give_the_same_counts_in_every_format(texts, limits):
    expected = [[text.split().count(term) for term in TERMS] for text in texts]
    for kind, held, suffix in WRITTEN:
        reads = list(read_shard(*written(kind, held, suffix, texts), limits))
        assert rows(concatenate([read.batch for read in reads])) == expected
        assert sum(read.outside for read in reads) == 0


@settings(max_examples=12)
@given(documents, limits)
def test_a_shard_of_any_format_read_on_from_any_cut_gives_the_same_batches(texts, limits):
    for kind, held, suffix in WRITTEN:
        arguments = written(kind, held, suffix, texts)
        whole = [(read.after, rows(read.batch)) for read in read_shard(*arguments, limits)]
        for number, (after, _) in enumerate(whole[:-1], start=1):
            rest = read_shard(*arguments, limits, start=after)
            assert [(read.after, rows(read.batch)) for read in rest] == whole[number:]


@pytest.mark.parametrize(("kind", "held", "suffix"), WRITTEN)
def test_the_share_before_a_place_grows_to_all_of_the_shard(kind, held, suffix):
    texts = [" ".join(np.random.default_rng(n).choice(TERMS, 300)) for n in range(100)]
    arguments = written(kind, held, suffix, texts)
    reads = list(read_shard(*arguments, ReadLimits(batch_documents=10)))
    shares = [share_before(*arguments[:2], place) for place in (START, *(r.after for r in reads))]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert shares[0] == 0


# Documents that are left where a format cannot tell that something is missing: lines end anywhere,
# a NUL is a character between words, and an archive may begin with something else.
LEFT = {
    ("text", "half"): 30,
    ("text", "NUL"): 1,
    ("directory", "half"): 60,
    ("directory", "NUL"): 60,
    ("jsonl", "half"): 30,
    ("lda-c", "half"): 30,
    ("zip", "mark before"): 60,
}


@pytest.mark.parametrize("damage", ["half", "random", "mark before", "NUL"])
@pytest.mark.parametrize(("kind", "held", "suffix"), WRITTEN)
def test_a_damaged_shard_is_refused_where_its_format_can_tell(kind, held, suffix, damage):
    shard, *more = written(kind, held, suffix, ["law sea", "sea"] * 30)
    expected = rows(concatenate([read.batch for read in read_shard(shard, *more)]))
    fs = fsspec.filesystem("memory")
    [path, *_] = fs.find(shard.url)
    content = fs.cat(path)
    damaged = {
        "half": content[: len(content) // 2],
        "random": np.random.default_rng(0).bytes(400),
        "mark before": b"\xff\xfe" + content,
        "NUL": b"\0" * 9,
    }[damage]
    fs.pipe(path, damaged)
    bad = replace(shard, size=sum(state.size for state in files_of(shard)))
    left = None if suffix else LEFT.get((kind, damage))
    if left is None:
        with pytest.raises(ShardError):
            list(read_shard(bad, *more))
        return
    found = rows(concatenate([read.batch for read in read_shard(bad, *more)]))
    assert len(found) == left
    # one file of a folder is damaged, and of a line that was cut the words may be gone
    first = 1 if kind == "directory" else 0
    last = left if kind in ("directory", "zip") or damage == "half" else 0
    assert found[first:last] == expected[first:last]
    if damage == "NUL":
        assert not any(found[0])


def dated(kind, days):
    """Content of a shard of a format with a column of days; None for a format without columns."""
    if kind == "parquet":
        return parquet(2, day=pa.array([day or None for day in days], pa.string()))
    if kind == "jsonl":
        return "".join(json.dumps({"day": day or None}) + "\n" for day in days).encode()
    if kind == "csv":
        return "\n".join(["n,day", *(f"1,{day}" for day in days)]).encode()
    if kind == "tsv":
        return "\r\n".join(["day\tn", *(f'"{day}"\t1' for day in days)]).encode()
    return None


@pytest.mark.parametrize("kind", FORMATS)
def test_a_column_of_dates_gives_the_days_wherever_there_are_columns(kind):
    form, source = FORMATS[kind], DateSource(column="day")
    if dated(kind, []) is None:
        assert type(form).days is Format.days
        if kind in TABLES:
            name = f"a{form.suffixes[0]}" + "/zarr.json" * form.of_folder
            shard = put(f"memory:///{uuid.uuid4().hex}", name, b"1")
            shard = replace(shard, url=shard.url.removesuffix("zarr.json"))
        else:
            shard, *_ = written(kind, "texts" if kind in TEXTS_AS else "ids", "", ["sea"])
        with pytest.raises(ShardError, match=f"of format {kind}, which has no column 'day' of"):
            days_of(shard, FORM, source)
        return

    def days_in(*days):
        place = f"memory:///{uuid.uuid4().hex}"
        return days_of(put(place, f"a{form.suffixes[0]}", dated(kind, days)), FORM, source)

    found = days_in("2026-11-21", "", "2026-11-19T23:30:00", "2026-11-30")
    assert found == DateRange(date(2026, 11, 19), date(2026, 11, 30))
    with pytest.raises(ShardError, match="does not begin with a date"):
        days_in("2026-11-21", "soon")
    with pytest.raises(ShardError, match="holds no dates"):
        days_in("")
