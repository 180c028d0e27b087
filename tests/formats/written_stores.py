"""Stores as they were written once, and what is asked of them."""

from pathlib import Path

import numpy as np

from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.storage.files.sealed import unseal

V1, V2 = (Path(__file__).parent / name for name in ("v1", "v2"))


def content_of(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def counted(store, rows):
    batch = CountBatch.from_csr(np.array(rows), store.vocabulary.fingerprint)
    return MomentStatistics.of(batch, store.basis, halves=store.halves)


def format_of(place):
    content = unseal((Path(place) / "format.json").read_bytes(), "")
    return {name: content[name] for name in ("format", "min_reader", "min_writer", "install")}
