"""A disk that fills up at every point of every action: a small tmpfs with ballast on it."""

import os
import re
import subprocess
from collections import Counter
from datetime import timedelta

import numpy as np
import pytest
from mounted_disks import mounted_disk

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.layout import commit_file
from streaming_moments.storage.operations.history import rollback, tag
from streaming_moments.storage.operations.labels import label
from streaming_moments.storage.store.garbage import collect, find_garbage
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import (
    append,
    compact,
    create,
    forget,
    model_of,
    record,
    replace,
    segment,
    total,
)

NO_GRACE = timedelta(0)
PAGE = 4096
SEED_A, SEED_B = {"a": 1}, {"b": 2}
# what a user does, and the shards counted then
ACTIONS = {
    "append": (lambda store: append(store, {"c": 3}), {"a": 1, "b": 2, "c": 3}),
    "forget": (lambda store: forget(store, SEED_B), SEED_A),
    "replace": (lambda store: replace(store, SEED_B, {"b": 4}), {"a": 1, "b": 4}),
    "compact": (compact, {"a": 1, "b": 2}),
    "save": (lambda store: store.save_model("new", model_of(5)), {"a": 1, "b": 2}),
    "tag": (lambda store: tag(store, "live", "old"), {"a": 1, "b": 2}),
    "label": (lambda store: label(store, 0, "ships"), {"a": 1, "b": 2}),
    "rollback": (lambda store: rollback(store, 1), SEED_A),
}


@pytest.fixture
def small_disk(tmp_path):
    with mounted_disk(tmp_path / "disk", "4m") as place:
        yield place


def free_pages(disk):
    state = os.statvfs(disk)
    return state.f_bavail * state.f_frsize // PAGE


def fill(disk, left):
    """Leave so many pages free."""
    (disk / "ballast").write_bytes(b"x" * (free_pages(disk) - left) * PAGE)
    assert free_pages(disk) == left


def files(root):
    return {path for path in root.rglob("*") if path.is_file()}


def problem_with(root, version, shards):
    """What the store holds else than it must; empty if nothing."""
    store = MomentStore.open(str(root))
    if store.version != version:
        return f"version {store.version} instead of {version}"
    if store.verify():
        return f"verify: {store.verify()}"
    if store.load() != total(shards.values()):
        return "other statistics"
    if set(store.ledger()) != {record(*shard) for shard in shards.items()}:
        return "another ledger"
    return ""


def problem_with_error(error):
    """Why an error is not as a user should see it; empty if it is."""
    if not isinstance(error, StoreError) or "\n" in str(error):
        return f"no line of ours: {error!r}"
    told = re.sub(r"\([^()]*\)", "", str(error))
    return "" if re.search(r"; (check .*|free some )space", told) else f"names no remedy: {error}"


def problem_of(disk, root, action, left):
    """What is wrong after an action on a disk with so many pages left; and how it ended."""
    act, shards = ACTIONS[action]
    before, version = files(root), 3
    fill(disk, left)
    try:
        act(MomentStore.open(str(root)))
    except Exception as error:
        wrong = problem_with_error(error) or problem_with(root, version, {"a": 1, "b": 2})
        (disk / "ballast").unlink()
        found = find_garbage(Folder.at(str(root)), NO_GRACE)
        collect(Folder.at(str(root)), found)
        if any(heap.is_sealed for heap in found):
            version += 1
            before.add(root / commit_file(version))
        if not wrong and files(root) != before:
            wrong = f"gc leaves {sorted(files(root) - before)}"
        if not wrong:
            act(MomentStore.open(str(root)))
            wrong = problem_with(root, version + 1, shards)
        return wrong, "refused"
    (disk / "ballast").unlink()
    return problem_with(root, version + 1, shards), "went through"


def prepared(root):
    store = append(append(create(root), SEED_A), SEED_B)
    return store.save_model("old", model_of(0))


def test_a_full_disk_refuses_in_one_line_and_the_same_action_completes_later(small_disk, campaigns):
    rng = np.random.default_rng(campaigns.seed)
    tried = campaigns.size(14, 400)
    held, outcomes = 0, Counter()
    for number in range(tried):
        root = small_disk / str(number)
        prepared(root)
        action = [*ACTIONS][number % len(ACTIONS)]
        # most actions need 40 pages, a commit one
        left = int(rng.integers(3 if action in ("tag", "label", "rollback") else 44))
        wrong, outcome = problem_of(small_disk, root, action, left)
        outcomes[outcome] += 1
        held += not wrong
        if wrong:
            print(f"{action} with {left} pages left: {wrong}")
        subprocess.run(["rm", "-r", str(root)], check=True, timeout=20)
    note = ", ".join(f"{times} {outcome}" for outcome, times in outcomes.most_common())
    campaigns.record("actions on a disk that fills up", tried, held, note)


def test_a_store_that_did_not_fit_is_created_later(small_disk):
    for left in range(6):
        root = small_disk / str(left)
        fill(small_disk, left)
        with pytest.raises(StoreError) as told:
            create(root)
        assert problem_with_error(told.value) == ""
        (small_disk / "ballast").unlink()
        assert create(root).verify() == []
        assert find_garbage(Folder.at(str(root)), NO_GRACE) == []


def test_garbage_is_collected_on_a_full_disk(small_disk):
    store = prepared(small_disk / "store")
    segment(store, {"z": 9})
    fill(small_disk, 0)
    found = find_garbage(store.folder, NO_GRACE)
    assert len(found) == 1
    collect(store.folder, found)
    assert free_pages(small_disk) > 0
    (small_disk / "ballast").unlink()
    assert append(store, {"c": 3}).verify() == []
