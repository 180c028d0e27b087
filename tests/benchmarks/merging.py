"""Seconds and memory of a hub that merges stores of a full state, beside those of reading them.

`python tests/benchmarks/merging.py FOLDER --step make` makes the stores. `--step read`, `load`,
`copy` (the bytes alone, as `cp` with a sync of each file) and `merge` then measure, each in a
process of its own. `merge` and `copy` delete what they wrote. Each store has 10,000 words, a core
of 4,096 and 32 columns. `--cold` reads from the disk what is in the memory of the system. On one
disk a merge gives files second names; `--copied` lets it copy them, as to another disk.

`--step ledgers` needs no stores: it looks for shards that count twice among a million.
"""

import argparse
import os
import resource
import shutil
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.log.commits import SegmentReference
from streaming_moments.storage.log.forgotten import Forgotten
from streaming_moments.storage.log.layout import segment_folder
from streaming_moments.storage.log.ledger import Ledger, ShardRecord
from streaming_moments.storage.log.manifests import read_files, segment_manifests
from streaming_moments.storage.log.origins import renamed
from streaming_moments.storage.log.record_files import record_schema
from streaming_moments.storage.merging.counted_once import (
    fresh_records,
    refusal,
    without_copies,
)
from streaming_moments.storage.merging.pulling import pull
from streaming_moments.storage.merging.shared_foundation import SharedFoundation, create_like
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

STEPS = ("make", "read", "load", "copy", "merge", "ledgers")
WORDS, CORE, COLUMNS = 10_000, 4_096, 32


def made(folder, stores, documents):
    """An empty hub, and stores that counted one shard each."""
    vocabulary = Vocabulary(tuple(f"w{word:05}" for word in range(WORDS)), CORE)
    rng = np.random.default_rng(0)
    matrix = rng.integers(-127, 128, (CORE, COLUMNS)).astype(np.int8)
    basis = Basis(matrix, WORDS, vocabulary.fingerprint)
    hub = MomentStore.create(f"{folder}/hub", vocabulary, None, basis, ShardFormat())
    shares = 1 / np.arange(2, WORDS + 2)
    counts = rng.poisson(160 * shares / shares.sum(), (documents, WORDS))
    batch = CountBatch.from_csr(counts, vocabulary.fingerprint)
    statistics = MomentStatistics.of(batch, basis)
    histogram = statistics.length_histogram
    shared, found = SharedFoundation.of(hub), []
    for number in range(stores):
        site = create_like(f"{folder}/site{number:02}", shared)
        numbers = histogram.n_documents, histogram.n_tokens
        record = ShardRecord(f"/{number}", 10, f"sha256:{number:064x}", *numbers)
        found.append(site.append_statistics(statistics, [record]))
    return hub, found


def read(stores):
    """Read every file of the segments once and compare its hash; gives the bytes."""
    size = 0
    for store in stores:
        for part in store.commit.segments:
            [manifest] = segment_manifests(store.folder, [part])
            for path, record in manifest.files.items():
                read_files(store.folder, segment_folder(part.id), manifest.files, [path])
                size += record.size
    return size


def copy(folder, target):
    """Copy every file of the segments, and sync each; nothing else."""
    for path in sorted(folder.glob("site*/segments/*/*")):
        files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
        for file in files:
            place = target / file.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
            with open(place, "rb+") as written:
                os.fsync(written.fileno())


def forget_pages(folder):
    """Let the system forget what it holds of files in memory."""
    for path in folder.glob("site*/segments/**/*"):
        if path.is_file():
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def records(number, first, copies=0):
    """Records of some shards; the first few have the content of the first shards of all."""
    places = np.arange(first, first + number)
    contents = np.concatenate([np.arange(copies), places[copies:]])
    columns = {
        "url": _texts("/data/folder/shard-", places, 9),
        "size": np.full(number, 1000),
        "fingerprint": _texts("sha256:", contents, 64),
        "documents": np.full(number, 5),
        "tokens": np.full(number, 500),
        "outside": np.zeros(number, np.int64),
    }
    return pa.table(columns, schema=record_schema())


def _texts(before, numbers, digits):
    """Numbers with zeros and a text before them, made without Python objects."""
    padded = pc.utf8_lpad(pc.cast(pa.array(numbers), pa.string()), digits, "0")
    return pc.binary_join_element_wise(before, padded, "")


def check_ledgers(shards, copies):
    """Look for shards of one origin that this store and another origin count, too."""
    names, tables = (None, "rome", "oslo"), {}
    parts = [
        SegmentReference(letter * 32, "0" * 64, 5 * shards, 500 * shards, shards, 7, origin=name)
        for letter, name in zip("abc", names, strict=True)
    ]
    for place, part in enumerate(parts):
        own = records(shards, place * shards, copies if place == 2 else 0)
        tables[part.id] = own if part.origin is None else renamed(own, part.origin)
    ledger, before = Ledger(tables), megabytes()
    fresh = fresh_records(ledger, parts[2:], [])
    begun = time.process_time()
    found = refusal(parts, ledger, Forgotten(), fresh, "oslo")
    seconds = time.process_time() - begun
    begun = time.process_time()
    without_copies(parts[2:], ledger.of_segments(parts[2:]), ledger.of_segments(parts[:2]))
    print(
        f"{copies:,} of {shards:,} shards count twice: {seconds:.1f} s of CPU, "
        f"{time.process_time() - begun:.1f} s with `unique`, "
        f"{megabytes() - before:.0f} MB more memory ({'refused' if found else 'accepted'})"
    )


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--stores", type=int, default=50)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--step", choices=STEPS)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--copied", action="store_true")
    parser.add_argument("--shards", type=int, default=1_000_000)
    asked = parser.parse_args()
    folder = Path(asked.folder)
    if asked.step == "ledgers":
        for copies in (0, 1000):
            check_ledgers(asked.shards, copies)
        return
    if asked.step == "make":
        made(folder, asked.stores, asked.documents)
        return
    stores = [MomentStore.open(str(path)) for path in sorted(folder.glob("site*"))]
    for file in folder.glob("site*/segments/**/*"):
        if file.is_file():
            file.chmod(0o600 if asked.copied else 0o666 & folder.stat().st_mode)
    if asked.cold:
        forget_pages(folder)
    before, begun, cpu = megabytes(), time.perf_counter(), time.process_time()
    size = sum(
        file.stat().st_size for path in folder.glob("site*/segments/*") for file in path.rglob("*")
    )
    if asked.step == "read":
        read(stores)
    elif asked.step == "load":
        for store in stores:
            for index in range(store.row_blocks):
                store.load_block(index)
    elif asked.step == "copy":
        copy(folder, folder / "copied")
    else:
        hub = MomentStore.open(str(folder / "hub"))
        for store in stores:
            hub = pull(hub, store).store
    seconds, used = time.perf_counter() - begun, time.process_time() - cpu
    print(
        f"{asked.step}: {len(stores)} stores, {size / 1e6:.0f} MB, {seconds:.1f} s, "
        f"{used:.1f} s of CPU, {megabytes() - before:.0f} MB more memory"
    )
    if asked.step == "merge":
        again = time.perf_counter()
        for store in stores:
            pull(hub, store)
        print(f"again, with nothing new: {time.perf_counter() - again:.1f} s")
        shutil.rmtree(folder / "hub")
        create_like(str(folder / "hub"), SharedFoundation.of(stores[0]))
    shutil.rmtree(folder / "copied", ignore_errors=True)


if __name__ == "__main__":
    main()
