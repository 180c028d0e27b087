"""Halves by content, for every kind of statistics in a store."""

import itertools
import json
import uuid
from dataclasses import asdict, replace

import fsspec
import numpy as np
import pytest

from streaming_moments.errors import ForeignStatistics
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.edges.foundation import EdgesFoundation
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.sets.foundation import SetsFoundation
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.statistics.vectors.grid import Grid
from streaming_moments.statistics.views.foundation import ViewsFoundation
from streaming_moments.storage.counting.graphs.edges import EdgeColumns
from streaming_moments.storage.counting.sets import SetsForm
from streaming_moments.storage.counting.symbols.sequences import SequencesForm
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.counting.vectors import VectorsForm
from streaming_moments.storage.counting.views import ViewsForm
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.kinds.registry import reader_of
from streaming_moments.storage.log.commits import READING
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.operations.appended import Longer, appended_to
from streaming_moments.storage.operations.growth import grow, store_of_era
from streaming_moments.storage.operations.lineages import stage, stage_segment, staged_store
from streaming_moments.storage.segments.segments import Segment
from streaming_moments.storage.shards import Shard, ShardFormat, fingerprint
from streaming_moments.storage.store.store import MomentStore

TERMS = ("sea", "law", "ship", "tax", "port")
LATER = ("storm", "king")
POLICY = TokenPolicy(passage_words=3)
WORDS = Vocabulary(TERMS, core=4, policy=POLICY.fingerprint)
NAMES = Vocabulary(tuple("abcde"), core=5)


def basis_of(words):
    return Basis(np.eye(words.core, 2, dtype=np.int8), words.n_words, words.fingerprint)


def texts(rng):
    return {"text": " ".join(rng.choice([*TERMS, *LATER, "else"], rng.integers(0, 12)))}


def counts_store(url):
    return MomentStore.create(url, WORDS, POLICY, basis_of(WORDS), ShardFormat())


def created(url, foundation, reading):
    form = ShardFormat().to_json() | {READING: reading}
    return MomentStore.create_on(url, foundation, form)


def views_store(url):
    own = (basis_of(NAMES),) * 3, (NAMES,) * 3, ("x", "y", "z")
    foundation = ViewsFoundation(*own, by_content=True)
    return created(url, foundation, ViewsForm.parse(("x", "y", "z")).to_json())


def sets_store(url):
    return created(
        url, SetsFoundation(NAMES, basis_of(NAMES), by_content=True), SetsForm().to_json()
    )


def vectors_store(url):
    grid = Grid(np.zeros(3), step=0.25, radius=500)
    sketch = np.eye(3, 2, dtype=np.int8), np.zeros(2, np.uint8)
    return created(url, VectorsFoundation(grid, *sketch), VectorsForm().to_json())


def sequences_store(url):
    foundation = SequencesFoundation(NAMES, basis_of(NAMES))
    return created(url, foundation, SequencesForm(columns=("s",)).to_json())


def edges_store(url):
    return created(url, EdgesFoundation(NAMES), asdict(EdgeColumns()))


def letters(rng, most=4):
    return rng.choice(list("abcdex"), rng.integers(0, most)).tolist()


KINDS = {
    "counts": (counts_store, texts),
    "views": (views_store, lambda rng: {name: letters(rng) for name in "xyz"}),
    "sets": (sets_store, lambda rng: {"features": letters(rng)}),
    "vectors": (vectors_store, lambda rng: {"vector": rng.normal(size=3).tolist()}),
    "sequences": (sequences_store, lambda rng: {"s": letters(rng, 9)}),
}


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def put(records):
    path = f"/{uuid.uuid4().hex}/shard.jsonl"
    content = lines(records)
    fsspec.filesystem("memory").pipe(path, content)
    return Shard(f"memory://{path}", len(content))


def counted(store, shards, limits=ReadLimits()):
    reader = reader_of(store, limits)
    reads = (read for shard in shards for read in reader.read(shard))
    return store.foundation.of([store.foundation.prepared(read.batch) for read in reads])


@pytest.fixture(params=KINDS)
def kept(request):
    """A store of a kind, with some records."""
    create, draw = KINDS[request.param]
    rng = np.random.default_rng(7)
    return create(f"memory://{uuid.uuid4().hex}"), [draw(rng) for _ in range(60)]


def test_any_order_cut_and_shards_give_the_same_bits(kept):
    store, records = kept
    whole = counted(store, [put(records)])
    rng = np.random.default_rng(8)
    for _ in range(3):
        moved = [records[place] for place in rng.permutation(len(records))]
        ends = [0, *np.sort(rng.integers(0, len(records), 5)).tolist(), len(records)]
        shards = [put(moved[first:end]) for first, end in itertools.pairwise(ends) if first < end]
        assert counted(store, shards, ReadLimits(batch_documents=7)) == whole
    # what is taken away leaves what there would be without it
    assert whole - counted(store, [put(records[9:30])]) == counted(
        store, [put(records[:9] + records[30:])]
    )
    twice = counted(store, [put([*records, *records[::-1]])])
    assert twice == whole + whole
    # in turn, as in earlier formats, none of it holds
    turns = replace(store, foundation=replace(store.foundation, by_content=False))
    assert counted(turns, [put(records)]) != counted(turns, [put(moved)])


def test_a_file_that_grew_is_as_if_counted_at_once(kept):
    store, records = kept
    shard = put(records[:23])
    known = ShardRecord(shard.url, shard.size, fingerprint(shard), 23, 1)
    before = counted(store, [shard])
    content = lines(records)
    fsspec.filesystem("memory").pipe(shard.url.removeprefix("memory://"), content)
    longer = Shard(shard.url, len(content))
    part = appended_to(Longer(longer, (known,), ShardFormat(), 1 << 20)).part
    assert before + counted(store, [part]) == counted(store, [longer])


def test_a_store_says_its_rule_and_keeps_out_writers_of_before(kept):
    store, records = kept
    lineage = store.commit.lineage
    assert lineage.halves_by_content
    assert store.foundation.by_content
    form = store.format
    assert (form.format, form.min_writer, form.install) == (6, 6, "0.3.0")
    assert form.min_reader == (3 if store.kind == "counts" else 1)
    opened = MomentStore.open(store.url)
    assert opened.foundation.by_content
    # as a version before wrote it
    old = replace(store.commit, lineage=replace(lineage, halves_by_content=False))
    by_place = store._with(old)
    assert not by_place.foundation.by_content
    assert by_place.foundation.fingerprint == store.foundation.fingerprint
    shard = put(records)
    size = ShardRecord(shard.url, shard.size, fingerprint(shard), 60, 0)
    statistics = counted(by_place, [shard])
    said = replace(size, documents=statistics.totals.n_documents, tokens=statistics.totals.n_tokens)
    late = by_place.write_segment(statistics, [said])
    with pytest.raises(ForeignStatistics, match="by place, but a rebase has changed how"):
        store.append(late)
    in_turn = counted(by_place, [shard])
    whole = counted(store, [shard])
    arrays = whole.arrays()
    for name, array in in_turn.arrays().items():
        assert np.array_equal(array, arrays[name]) != name.startswith("even_"), name


def test_rows_that_repeat_by_chance_are_of_both_halves_in_turn_as_before():
    sets = SetsFoundation(NAMES, basis_of(NAMES))
    store = created(f"memory://{uuid.uuid4().hex}", sets, SetsForm().to_json())
    assert (store.format.format, store.commit.lineage.halves_by_content) == (1, False)
    assert not MomentStore.open(store.url).foundation.by_content
    shard = put([{"features": ["a", "b"]}] * 6)
    assert counted(store, [shard]).even_pair_counts[0, 1] == 3


def test_edges_are_of_halves_by_their_ends_in_every_format():
    store = edges_store(f"memory://{uuid.uuid4().hex}")
    assert (store.format.format, store.commit.lineage.halves_by_content) == (1, False)
    pairs = [{"source": a, "target": b} for a, b in itertools.combinations("abcde", 2)]
    whole = counted(store, [put(pairs)])
    assert counted(store, [put(pairs[:4:-1]), put(pairs[:5])]) == whole


def test_a_store_of_halves_by_place_is_turned_over_by_a_lineage_aside(tmp_path):
    store = counts_store(str(tmp_path / "store"))
    lineage = replace(store.commit.lineage, halves_by_content=False)
    store = store._with(replace(store.commit, lineage=lineage))
    staged = stage(store, WORDS, POLICY, basis_of(WORDS), {})
    assert staged.commit.staged.lineage.halves_by_content
    assert not staged.foundation.by_content
    aside = staged_store(staged)
    assert aside.foundation.by_content
    rng = np.random.default_rng(3)
    shard = put([texts(rng) for _ in range(20)])
    statistics = counted(aside, [shard])
    totals = statistics.totals
    record = ShardRecord(
        shard.url, shard.size, fingerprint(shard), totals.n_documents, totals.n_tokens
    )
    ready: Segment = aside.write_segment(statistics, [record])
    with pytest.raises(ForeignStatistics, match="by place,"):
        stage_segment(staged, replace(ready, halves_by_content=False))
    assert stage_segment(staged, ready).commit.staged.segments


def test_words_that_are_added_move_no_document():
    store = counts_store(f"memory://{uuid.uuid4().hex}")
    rng = np.random.default_rng(9)
    shard = put([texts(rng) for _ in range(80)])
    before = counted(store, [shard])
    once = grow(store, LATER[:1])
    grown = grow(once, LATER[1:])
    assert grown.counts.first_words == len(TERMS)
    assert MomentStore.open(grown.url).counts.first_words == len(TERMS)
    after = counted(grown, [shard])
    first = slice(0, len(TERMS))
    assert np.array_equal(after.even_pair_counts[first], before.even_pair_counts)
    assert after.even_pair_counts[len(TERMS) :].any()
    assert counted(store_of_era(grown, len(TERMS)), [shard]) == before
    between = counted(store_of_era(grown, len(TERMS) + 1), [shard])
    assert np.array_equal(between.even_pair_counts, after.even_pair_counts[: len(TERMS) + 1])
