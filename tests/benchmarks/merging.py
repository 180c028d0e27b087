"""Seconds and memory of a hub that merges stores of a full state, beside those of reading them.

`python tests/benchmarks/merging.py FOLDER --step make` makes the stores. `--step read`, `load` and
`merge` then measure, each in a process of its own. `merge` deletes the folder at the end. Each
store has 10,000 words, a core of 4,096 and 32 columns.
"""

import argparse
import resource
import shutil
import time
from pathlib import Path

import numpy as np

from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.log.layout import segment_folder
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.log.manifests import read_files, segment_manifests
from streaming_moments.storage.merging.pulling import pull
from streaming_moments.storage.merging.shared_foundation import SharedFoundation, create_like
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

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


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--stores", type=int, default=50)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--step", choices=("make", "read", "load", "merge"))
    asked = parser.parse_args()
    folder = Path(asked.folder)
    if asked.step == "make":
        made(folder, asked.stores, asked.documents)
        return
    stores = [MomentStore.open(str(path)) for path in sorted(folder.glob("site*"))]
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
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
