"""Damage to the files of a store is found: by its size on opening, else by what reads the file.

Exempt are files that say nothing of the statistics: `commits/probe`, whose content nobody reads,
`reached.json`, which is only to tell of a lost commit (see its own tests), `clock`, which
lasts only to be asked for its time, and `*.partial`, which a killed writer leaves and only `gc`
looks at.
"""

import random
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from streaming_moments.errors import StoreError, StreamingMomentsError
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.files.folders import CLOCK, Folder
from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.log.layout import model_folder, reached_file, segment_folder
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.operations.forgetting import commit_recount
from streaming_moments.storage.operations.history import rollback, tag
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.changes import Recount
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.storage.store.verification import store_problems
from streaming_moments.testing.small_store import compact, model_of

POLICY = TokenPolicy(stop_words=("and",))
# two words make two row blocks, and so the fewest files
VOCABULARY = Vocabulary(("law", "sea"), 2, POLICY.fingerprint)
BASIS = Basis(np.array([[90], [-41]], dtype=np.int8), 2, VOCABULARY.fingerprint)
RESIZING = frozenset({"truncated", "emptied", "deleted", "lengthened"})


def segment(store, url, seed):
    counts = np.random.default_rng(seed).poisson(1.5, (6, 2))
    statistics = MomentStatistics.of(CountBatch.from_csr(counts, VOCABULARY.fingerprint), BASIS)
    histogram = statistics.length_histogram
    record = ShardRecord(url, 10, f"sha256:{seed}", histogram.n_documents, histogram.C1, 2)
    return store.write_segment(statistics, [record])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A store whose latest version has a compacted segment, an added and a taken one."""
    root = tmp_path_factory.mktemp("damage") / "store"
    store = MomentStore.create(str(root), VOCABULARY, POLICY, BASIS, ShardFormat())
    for seed, url in enumerate("abc"):
        store = store.append(segment(store, url, seed))
    store = compact(store)
    store = store.append(segment(store, "d", 3))
    recount = Recount("forget", "", removed=(segment(store, "a", 0),))
    store = commit_recount(store, recount)
    store = store.save_model("one", model_of(0)).save_model("two", model_of(1))
    store = tag(store, "live", "one")
    store = store.append(None, skipped=[("bad", "not UTF-8")])
    assert [part.sign for part in store.commit.segments] == [1, 1, -1]
    assert store.verify() == []
    return root


class Subject:
    """The files of the store, what each is a part of, and what each version holds."""

    def __init__(self, root):
        self.root = root
        self.latest = MomentStore.open(str(root))
        found = sorted(path for path in root.rglob("*") if path.is_file())
        self.contents = {str(path.relative_to(root)): path.read_bytes() for path in found}
        self.exempt = {path for path in self.contents if is_exempt(path)}
        self.paths = [path for path in self.contents if path not in self.exempt]
        self.kinds = defaultdict(list)
        for path in self.paths:
            self.kinds[self.kind(path)].append(path)
        self.holders = {}
        for commit in reversed(self.latest.log()):
            folders = [segment_folder(part.id) for part in commit.segments]
            folders += [model_folder(name, model.id) for name, model in commit.models.items()]
            self.holders.update(dict.fromkeys(folders, commit.version))
        self.reads, self.states = {}, {}

    def kind(self, path):
        if path.startswith("commits/"):
            last = f"{self.latest.version:020d}" in path
            return "latest commit" if last else "earlier commit"
        path = re.sub(r"[0-9a-f]{64}|[0-9a-f]{32}", "*", path)
        path = re.sub(r"/c(\.\d+)*$", "/chunk", path)
        path = re.sub(r"^models/\w+/\*/\w+/", "models/*/array/", path)
        path = re.sub(r"^models/\w+/", "models/*/", path)
        return re.sub(r"^segments/\*/\w+/zarr", "segments/*/array/zarr", path)

    def version_of(self, path):
        """The latest version that the file is a part of."""
        if path.startswith("commits/"):
            return int(Path(path).stem)
        parts = path.split("/")
        folder = "/".join(parts[: 2 if parts[0] == "segments" else 3])
        return self.holders.get(folder, self.latest.version)

    def restore(self, *paths):
        for path in paths:
            (self.root / path).write_bytes(self.contents[path])

    def read_by_load(self, version, monkeypatch):
        """Files that opening and loading a version reads, as seen, and what it loads."""
        if version not in self.reads:
            seen = set()
            find_all, find = Folder.find_all, Folder.find

            def watched_all(folder, names, limits=None):
                seen.update(names)
                return find_all(folder, names, limits)

            def watched(folder, name):
                seen.add(name)
                return find(folder, name)

            with monkeypatch.context() as patch:
                patch.setattr(Folder, "find_all", watched_all)
                patch.setattr(Folder, "find", watched)
                self.states[version] = MomentStore.open(str(self.root), version).load()
            self.reads[version] = seen
        return self.reads[version]


def is_exempt(path):
    return path in ("commits/probe", reached_file(), CLOCK) or path.endswith(".partial")


@pytest.fixture(scope="module")
def subject(place):
    return Subject(place)


def damages(subject, path, rng):
    """Contents of some files instead of theirs, by the name of the damage; None: no file."""
    whole = subject.contents[path]
    flipped = bytearray(whole)
    flipped[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
    # a file without siblings gets the content of another kind
    siblings = [p for p in subject.kinds[subject.kind(path)] if subject.contents[p] != whole]
    siblings = siblings or [p for p in subject.paths if subject.contents[p] != whole]
    sibling = rng.choice(siblings)
    earlier = siblings[0]
    tried = {
        "one bit flipped": {path: bytes(flipped)},
        "truncated": {path: whole[: rng.randrange(1, len(whole))]},
        "emptied": {path: b""},
        "zeroed": {path: bytes(len(whole))},
        "deleted": {path: None},
        "swapped": {path: subject.contents[sibling], sibling: whole},
        "stale": {path: subject.contents[earlier]},
        "lengthened": {path: whole + rng.randbytes(rng.choice((1, 8, 4096)))},
    }
    return tried.items()


def apply(subject, contents):
    for path, content in contents.items():
        if content is None:
            (subject.root / path).unlink()
        else:
            (subject.root / path).write_bytes(content)


def judgement(subject, path, monkeypatch, always_load=False):
    """How damage to a file was found, empty if it was not, and what was said."""
    version = subject.version_of(path)
    reads = subject.read_by_load(version, monkeypatch)
    try:
        opened = MomentStore.open(str(subject.root), version)
    except StoreError as error:
        return "open", str(error)
    problem = next(store_problems(opened.folder, opened.commit), "")
    if always_load or path in reads:
        try:
            if opened.load() != subject.states[version]:
                return "", "load gives other numbers"
        except StreamingMomentsError:
            pass
    return "verify" if problem else "", problem


def test_every_file_is_one_whose_damage_is_tried(subject):
    assert subject.exempt == {"commits/probe", reached_file()}
    assert sorted(subject.kinds) == [
        "basis/*/Q.npy",
        "basis/*/basis.json",
        "earlier commit",
        "format.json",
        "latest commit",
        "models/*/*/manifest.json",
        "models/*/*/zarr.json",
        "models/*/array/chunk",
        "models/*/array/zarr.json",
        "segments/*/array/zarr.json",
        "segments/*/codocuments/chunk",
        "segments/*/document_frequencies/chunk",
        "segments/*/even_pair_counts/chunk",
        "segments/*/length_histogram/chunk",
        "segments/*/manifest.json",
        "segments/*/pair_counts/chunk",
        "segments/*/shards.parquet",
        "segments/*/triple_sketch/chunk",
        "segments/*/word_counts/chunk",
        "segments/*/zarr.json",
        "vocabulary/*.json",
    ]


def test_no_damage_to_any_kind_of_file_goes_unseen(subject, campaigns, monkeypatch):
    rng = random.Random(campaigns.seed)
    chosen = [rng.choice(paths) for paths in subject.kinds.values()]
    paths = subject.paths if campaigns.long else chosen
    tried = held = resized = opened = 0
    for path in paths:
        subject.read_by_load(subject.version_of(path), monkeypatch)
        for damage, contents in damages(subject, path, rng):
            apply(subject, contents)
            try:
                found, said = judgement(subject, path, monkeypatch, campaigns.long)
            finally:
                subject.restore(*contents)
            tried += 1
            # without these files nothing is there that could be named
            lost = damage == "deleted" and subject.kind(path) in ("format.json", "latest commit")
            named = lost or any(name in said for name in contents)
            held += bool(found and named)
            if not found or not named:
                print(f"{path} {damage}: found by {found or 'nothing'}, said {said!r}")
            if damage in RESIZING:
                resized += 1
                opened += found == "open"
                if found != "open":
                    print(f"{path} {damage}: not found on opening")
    campaigns.record("damage of each kind to files of each kind", tried, held)
    campaigns.record("damage of another size or number, on opening", resized, opened)
    assert MomentStore.open(str(subject.root)).verify() == []


def test_no_flipped_bit_goes_unseen(subject, campaigns, monkeypatch):
    rng = random.Random(campaigns.seed + 1)
    tried, held = campaigns.size(100, 10_000), 0
    for _ in range(tried):
        path = rng.choice(subject.paths)
        subject.read_by_load(subject.version_of(path), monkeypatch)
        flipped = bytearray(subject.contents[path])
        bit = rng.randrange(8 * len(flipped))
        flipped[bit // 8] ^= 1 << bit % 8
        apply(subject, {path: bytes(flipped)})
        try:
            found, said = judgement(subject, path, monkeypatch)
        finally:
            subject.restore(path)
        held += bool(found and path in said)
        if not found or path not in said:
            print(f"{path} bit {bit}: found by {found or 'nothing'}, said {said!r}")
    campaigns.record("random bit flips", tried, held)


def test_damage_to_an_earlier_commit_is_found_from_the_latest_version(subject):
    path = "commits/00000000000000000002.json"
    for content in (None, b"", subject.contents["commits/00000000000000000003.json"]):
        apply(subject, {path: content})
        try:
            problems = MomentStore.open(str(subject.root)).verify()
        finally:
            subject.restore(path)
        assert len(problems) == 1
        assert path in problems[0]


@pytest.mark.parametrize("folder", ["segment", "model", "basis"])
def test_a_file_too_many_is_found_on_opening(subject, folder):
    commit = subject.latest.commit
    names = {
        "segment": segment_folder(commit.segments[0].id),
        "model": model_folder("one", commit.models["one"].id),
        "basis": f"basis/{BASIS.fingerprint}",
    }
    stray = subject.root / names[folder] / "stray"
    stray.write_bytes(b"")
    try:
        with pytest.raises(
            StoreError, match=r"stray is not in the manifest; move it out of the store"
        ):
            MomentStore.open(str(subject.root))
        whole = folder != "basis"
        if whole:
            problems = MomentStore.open(str(subject.root), whole=False).verify()
            assert problems == [f"{stray} is not in the manifest"]
    finally:
        stray.unlink()


def test_what_a_killed_writer_left_half_written_hinders_nobody(subject):
    left = [
        subject.root / name / ".c.0.1234.partial"
        for name in ("commits", segment_folder(subject.latest.commit.segments[0].id))
    ]
    for file in left:
        file.write_bytes(b"half")
    try:
        assert MomentStore.open(str(subject.root)).verify() == []
    finally:
        for file in left:
            file.unlink()


def test_a_lost_last_commit_is_told_on_opening(subject):
    path = f"commits/{subject.latest.version:020d}.json"
    apply(subject, {path: None})
    try:
        with pytest.raises(StoreError, match=f"{path} is missing; restore it from a copy, or del"):
            MomentStore.open(str(subject.root))
        (subject.root / reached_file()).unlink()
        assert MomentStore.open(str(subject.root)).version == subject.latest.version - 1
    finally:
        subject.restore(path, reached_file())


def test_a_note_of_the_log_is_damaged_or_the_truth(subject):
    path, content = reached_file(), subject.contents[reached_file()]
    stale = seal({"version": 1})
    try:
        for bit in range(8 * len(content)):
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << bit % 8
            apply(subject, {path: bytes(flipped)})
            with pytest.raises(StoreError, match=f"{path} is damaged"):
                MomentStore.open(str(subject.root))
        for harmless in (None, stale):
            apply(subject, {path: harmless})
            assert MomentStore.open(str(subject.root)).commit == subject.latest.commit
    finally:
        subject.restore(path)


def test_a_damaged_latest_version_can_be_rolled_back(subject, tmp_path):
    root = tmp_path / "copy"
    for path, content in subject.contents.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    whole = MomentStore.open(str(root))
    sound = whole.at(5)
    expected = sound.load()
    (root / segment_folder(whole.commit.segments[-1].id) / "zarr.json").unlink()
    with pytest.raises(StoreError, match=r"zarr\.json is missing; restore it from a copy"):
        MomentStore.open(str(root))
    with pytest.raises(StoreError, match=r"zarr\.json is missing"):
        sound.latest()
    back = rollback(MomentStore.open(str(root), 5), 5)
    assert back.version == whole.version + 1
    assert MomentStore.open(str(root)).load() == expected
