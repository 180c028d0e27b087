"""Importing it compiles what a read task needs, so that processes forked afterwards need not."""

import gc
import tempfile
from pathlib import Path

import numpy as np

from streaming_moments import MomentStatistics
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.reading import read_shard
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat


def _warm():
    policy = TokenPolicy()
    vocabulary = Vocabulary(("law", "sea", "ship"), core=3, policy=policy.fingerprint)
    basis = Basis(np.eye(3, 2, dtype=np.int8), 3, vocabulary.fingerprint)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.txt").write_text("law sea ship law\nsea ship\n")
        [shard] = list_shards([f"{folder}/a.txt"])
        # nothing of Zarr, which starts threads
        for read in read_shard(shard, ShardFormat(), vocabulary, policy):
            MomentStatistics.of(read.batch, basis)


_warm()

# what is forked shares these objects: to look through them for garbage would copy their pages
gc.collect()
gc.freeze()
gc.set_threshold(20_000, 20, 20)  # as in a process of tests
