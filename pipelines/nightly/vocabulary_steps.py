"""What becomes of the words of a store in a night: a rebase, if one is due, or new words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import compact_when_many
from streaming_moments.pipelines.jobs.drift.states import outside_of
from streaming_moments.pipelines.jobs.grow import grow
from streaming_moments.pipelines.jobs.rebase import ShardsMissing, rebase
from streaming_moments.pipelines.nightly.config import NightlyConfig
from streaming_moments.pipelines.nightly.journal import Journal
from streaming_moments.quality.drift import Drift
from streaming_moments.storage.log.layout import COMMITS, commit_file
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore


def rebased(
    store: MomentStore, drift: Drift, config: NightlyConfig, run: Run, journal: Journal
) -> tuple[MomentStore, tuple[str, ...]]:
    """The store after a rebase if one is due, or was cut off; and why it was due."""
    reasons: tuple[str, ...] = ()
    if store.commit.staged is not None:
        reasons = ("a rebase was cut off",)
    elif config.rebase is not None and not _is_young(store, config.rebase.not_again_for):
        reasons = config.rebase.bounds.passed_by(drift)
    if not reasons:
        return store, ()
    allow_missing = config.rebase is not None and config.rebase.allow_missing
    with journal.step("rebase") as found:
        found["reasons"], told = list(reasons), list[str]()
        found["told"] = told
        try:
            result = rebase(store, replace(run, tell=told.append), None, allow_missing)
        except ShardsMissing as refused:
            # the old lineage is as good as it was: the gates judge its model
            found["refused"] = str(refused)
            return store, (*reasons, f"refused: {refused}")
        found |= {
            "shards": result.shards,
            "left_out": [url for url, _ in result.left_out],
            "resumed": result.resumed,
        }
        section = config.update
        store = compact_when_many(result.store, section.compact_after, run, section.compact_by)
        found["version"] = store.version
    return store, reasons


def _is_young(store: MomentStore, age: timedelta) -> bool:
    """Whether the lineage is younger than this, by the clock of the storage."""
    log = store.log()
    # that of the lineage may be expired, and is older than the oldest that is kept
    born = next((part for part in log if part.operation in ("create", "rebase")), log[-1])
    written = {f"{COMMITS}/{file.path}": file.modified for file in store.folder.files(COMMITS)}
    return store.folder.clock() - written[commit_file(born.version)] < age


def grown(
    before: MomentStore,
    store: MomentStore,
    listed: Sequence[Shard],
    config: NightlyConfig,
    run: Run,
    journal: Journal,
) -> MomentStore:
    """Add the words of tonight's shards to the store, if enough of their tokens are outside.

    Documents count the words from the next night on. A resumed night has no shards of its own, so
    words are added when others come. `before` and `store` are the store without and with tonight's
    shards, and `listed` all shards.
    """
    section = config.growth
    known = {record.url for record in before.ledger()}
    new = [record for record in store.ledger() if record.url not in known]
    share = outside_of(new)
    if section is None or share is None or share <= section.outside_above:
        return store
    tonight = {record.url for record in new}
    with journal.step("growth") as found:
        brought = [shard for shard in listed if shard.url in tonight]
        result = grow(store, brought, run, section.words)
        found |= {"outside_share": share, "words": len(result.words)}
        found["version"] = result.store.version
    return result.store
