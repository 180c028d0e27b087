"""Polishing: sums of passes are read exactly as they were written, or not at all."""

import uuid

import numpy as np
import pytest

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.models.passes.polishing import ExpectedCounts
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.operations.polishing import PassSums, PolishingFolder


def sums(seed):
    rng = np.random.default_rng(seed)
    counts, prior = rng.integers(0, 99, (5, 2)), rng.integers(0, 99, 3)
    bad = tuple((f"s{number}.txt", "is cut off") for number in range(seed))
    return PassSums(
        ExpectedCounts(counts, prior, documents=3 + seed, tokens=20 + seed), 1 + seed, bad
    )


def same(one, other):
    assert (one.shards, one.bad) == (other.shards, other.bad)
    for name in ("counts", "prior", "documents", "tokens"):
        np.testing.assert_array_equal(getattr(one.expected, name), getattr(other.expected, name))


@pytest.fixture
def work():
    return PolishingFolder(Folder.at(f"memory://{uuid.uuid4().hex}"), "1" * 32)


def test_parts_come_back_and_add_up(work):
    for seed in range(3):
        work.write(1, str(seed), sums(seed))
        same(work.find(1, str(seed)), sums(seed))
    same(work.summed(1, ["0", "1", "2"]), sums(0).add(sums(1)).add(sums(2)))
    both = sums(1).add(sums(2))
    assert (both.shards, both.bad) == (5, (*sums(1).bad, *sums(2).bad))
    assert (work.find(2, "0"), work.find(1, "3")) == (None, None)
    with pytest.raises(InvalidInput, match="the pass has no shards"):
        work.summed(1, [])
    with pytest.raises(StoreError, match=f"{'1' * 32}.* has been deleted or damaged"):
        work.summed(1, ["0", "3"])
    other = PolishingFolder(work.folder, "2" * 32)
    other.write(1, "0", sums(0))
    work.delete()
    assert work.find(1, "0") is None
    same(other.find(1, "0"), sums(0))


def test_sums_of_which_a_file_is_gone_or_damaged_are_not_there(work):
    work.write(1, "0", sums(1))
    files = {file.path: work.folder.read(file.path) for file in work.folder.files("")}
    assert len(files) > 3
    for path, content in files.items():
        work.folder.write(path, content[:-1])
        assert work.find(1, "0") is None, path
        work.folder.delete([path])
        assert work.find(1, "0") is None, path
        work.folder.write(path, content)
    same(work.find(1, "0"), sums(1))
