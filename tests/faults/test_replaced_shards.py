"""Shards replaced while they are read: what is counted is the content of the mark, or nothing."""

import gzip
import os
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from faulty_disk import interposed
from small_shards import jsonl, lda_c, parquet, separated

from streaming_moments.errors import ShardError
from streaming_moments.pipelines.aggregation.counting import count_shards
from streaming_moments.pipelines.aggregation.reading import ReadingContext
from streaming_moments.pipelines.aggregation.sums import GroupSums, Opening
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.storage import contents
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.layout import SegmentLayout
from streaming_moments.storage.shards import ShardFormat, fingerprint
from streaming_moments.storage.store.store import MomentStore

TERMS = ("law", "sea", "ship", "tax")
DOCUMENTS = 40
LOOKING = frozenset({"read", "list", "look", "block"})
LUMPS = (1, 1 << 30)  # bytes that are added at a time: a batch each, and all in one


def texts(word):
    return [f"law {word} law{' law' * (number % 5)}" for number in range(DOCUMENTS)]


def ids(number):
    return [[1, number, 1] + [1] * (i % 5) for i in range(DOCUMENTS)]


def of_ids(number):
    return lda_c([([1, number], [2, 3]) for _ in range(DOCUMENTS)])


# two contents of one size each
KINDS = {
    "a.txt": ["\n".join(texts(word)).encode() for word in ("sea", "tax")],
    "a.txt.gz": [gzip.compress("\n".join(texts(word)).encode(), 0) for word in ("sea", "tax")],
    "a.jsonl": [jsonl(texts(word)) for word in ("sea", "tax")],
    "a.csv": [separated(texts(word)) for word in ("sea", "tax")],
    "folder/": ["\n".join(texts(word)).encode() for word in ("sea", "tax")],
    "a.parquet": [
        parquet(8, text=[f"{text} {i}" for i, text in enumerate(texts(word))])
        for word in ("sea", "tax")
    ],
    "ids.parquet": [parquet(8, ids=ids(number)) for number in (2, 3)],
    "a.ldac": [of_ids(number) for number in (2, 3)],
}


@dataclass
class Swapping:
    """Replaces a file at some operations of a reader, and puts it back at the next."""

    path: Path
    contents: list
    at: tuple
    in_place: bool
    seen: int = 0
    struck: int = 0

    def __call__(self, operation, apply):
        if operation.kind not in LOOKING:
            return apply(operation)
        if self.seen in self.at:
            self.struck += 1
            self.swap()
        self.seen += 1
        return apply(operation)

    def swap(self):
        state, content = self.path.stat(), self.contents[self.struck % 2]
        assert state.st_size == len(content)
        place = self.path if self.in_place else self.path.with_name(".new")
        place.write_bytes(content)
        os.utime(place, ns=(state.st_atime_ns, state.st_mtime_ns))
        os.replace(place, self.path)


@dataclass(frozen=True, eq=False)
class Case:
    """A shard that may hold one of two contents, and what is counted of each."""

    path: Path
    contents: list
    lump_bytes: int
    context: ReadingContext
    honest: dict
    operations: int

    @classmethod
    def of(cls, folder, name, lump_bytes):
        path = folder / name / "document" if name.endswith("/") else folder / name
        path.parent.mkdir(exist_ok=True)
        if name.endswith("/"):
            path.with_name("another").write_text("law tax")
        with_ids = name in ("ids.parquet", "a.ldac")
        policy = None if with_ids else TokenPolicy()
        words = Vocabulary(
            TERMS,
            core=3,
            policy="" if policy is None else policy.fingerprint,
            token_ids=(1, 2, 3, 4) if with_ids else None,
        )
        rng = np.random.default_rng(3)
        basis = Basis(rng.integers(-127, 128, (3, 2)).astype(np.int8), 4, words.fingerprint)
        form = ShardFormat(ids_column="ids" if name == "ids.parquet" else None)
        store = MomentStore.create(str(folder / "store"), words, policy, basis, form)
        context = ReadingContext.of(store, ReadLimits(batch_documents=7), None)
        case = cls(path, KINDS[name], lump_bytes, context, {}, 0)
        seen = 0
        for content in case.contents:
            path.write_bytes(content)
            quiet = Swapping(path, case.contents, (), True)
            mark, statistics = case.counted(quiet)
            assert mark == fingerprint(case.shard())
            case.honest[mark] = statistics
            seen = quiet.seen
        assert len(case.honest) == 2
        first, second = case.honest.values()
        assert first != second
        return cls(path, KINDS[name], lump_bytes, context, case.honest, seen)

    def shard(self):
        inside = self.path.name == "document"
        [shard] = list_shards([str(self.path.parent if inside else self.path)])
        return shard

    def counted(self, swapping):
        """Mark and statistics of the shard, lump by lump."""
        layout = SegmentLayout(self.context.store.foundation, 1)
        sums = GroupSums(layout, Opening("", 0, 0, range(1)), 0)
        with interposed(swapping):
            receipt = count_shards([self.shard()], self.context, sums, self.lump_bytes)
        for spoilt in receipt.spoilt:
            raise spoilt.error
        arrays, foundation = sums.blocks[0].rows(slice(None)), layout.foundation
        return receipt.counted[0].mark, foundation.statistics(RowBlock(), receipt.totals, arrays)

    def stands(self, at, in_place):
        self.path.write_bytes(self.contents[0])
        swapping = Swapping(self.path, self.contents, at, in_place)
        try:
            mark, statistics = self.counted(swapping)
        except ShardError:
            return True
        finally:
            assert swapping.struck
        return self.honest[mark] == statistics


@pytest.mark.parametrize("lump_bytes", LUMPS)
@pytest.mark.parametrize("name", KINDS)
def test_a_shard_replaced_at_any_operation(tmp_path, monkeypatch, campaigns, name, lump_bytes):
    # small blocks, so that small shards have many
    monkeypatch.setattr(contents, "_BLOCK_BYTES", 256)
    case = Case.of(tmp_path, name, lump_bytes)
    places = [(at,) for at in range(case.operations)]
    rng = random.Random(f"{campaigns.seed} {name}")
    # and put back again: what is listed is then as it was
    places += [(at, rng.randrange(at + 1, case.operations)) for (at,) in places[:-1]]
    if not campaigns.long:
        places = rng.sample(places, min(len(places), 12))
    trials = [(at, in_place) for at in places for in_place in (True, False)]
    broken = [(at, in_place) for at, in_place in trials if not case.stands(at, in_place)]
    print(broken)
    campaigns.record(f"shards replaced: {name}", len(trials), len(trials) - len(broken))
