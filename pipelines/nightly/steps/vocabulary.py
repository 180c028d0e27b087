"""Changes of the vocabulary in a nightly run: a rebase, if one is due, or new words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from streaming_moments.errors import ShardError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import compact_when_many
from streaming_moments.pipelines.jobs.grow import grow
from streaming_moments.pipelines.jobs.rebase import ShardsMissing, pilot_of, rebase
from streaming_moments.pipelines.nightly.config import MOST_TIMES, NightlyConfig
from streaming_moments.pipelines.nightly.journal import Journal
from streaming_moments.pipelines.nightly.keys import PREFIX
from streaming_moments.printing.plural import agreeing
from streaming_moments.quality.drift import Drift
from streaming_moments.storage.log.layout import COMMITS, commit_file
from streaming_moments.storage.log.ledger import outside_of
from streaming_moments.storage.operations.growth import added_words
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

_SHOWN = 5  # name at most this many words in a message


def rebased(
    store: MomentStore, drift: Drift, config: NightlyConfig, run: Run, journal: Journal
) -> tuple[MomentStore, tuple[str, ...]]:
    """Rebase the store if this is due, or if a rebase was interrupted; also return why."""
    reasons: tuple[str, ...] = ()
    if store.commit.staged is not None:
        reasons = ("an earlier rebase was interrupted",)
    elif config.rebase is not None and not _is_young(store, config.rebase.not_again_for):
        reasons = config.rebase.bounds.passed_by(drift)
    if not reasons:
        return store, ()
    allow_missing = config.rebase is not None and config.rebase.allow_missing
    with journal.step("rebase") as found:
        found["reasons"], told = list(reasons), list[str]()
        found["told"] = told
        try:
            heard = replace(run, tell=lambda line: told.append(str(line)))
            result = rebase(store, heard, None, allow_missing)
        except ShardsMissing as missing:
            # continue with the old lineage, and let the gates judge the model fitted to it
            found["failed"] = str(missing)
            return store, (*reasons, f"not rebased: {missing}")
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
    """Whether the store's lineage is younger than `age`, by the clock of the storage."""
    log = store.log()
    # The commit that began the lineage may have expired. If so, use the time of the oldest stored
    # commit, which is later.
    born = next((part for part in log if part.operation in ("create", "rebase")), log[-1])
    written = {f"{COMMITS}/{file.path}": file.modified for file in store.folder.files(COMMITS)}
    return store.folder.clock() - written[commit_file(born.version)] < age


@dataclass(frozen=True)
class Growth:
    """Result of the step that adds words: the store, how many were added, and why or why not."""

    store: MomentStore
    words: int = 0
    told: str = ""


def grown(
    before: MomentStore,
    store: MomentStore,
    listed: Sequence[Shard],
    config: NightlyConfig,
    run: Run,
    journal: Journal,
) -> Growth:
    """Add words of new shards to the store, if enough of their tokens are outside the vocabulary.

    New shards are those that were counted after the last nightly run fitted its model. If there is
    no such model, they are the shards that this run counted. `before` and `store` are the store
    before and after this run counted shards; `listed` are all shards. The next run counts the added
    words. If an interrupted run or a user has added words, these are reported, and no more are
    added.
    """
    base, section = last_night(store) or before, config.growing
    lineage, n_words = store.commit.lineage, store.foundation.rows
    added = [part for part in added_words(lineage, n_words) if part.version > base.version]
    if added:
        number = sum(part.words for part in added)
        return Growth(
            store, number, f"{agreeing(number, 'word was', 'words were')} added to the vocabulary"
        )
    known = {record.url for record in base.ledger()}
    new = [record for record in store.ledger() if record.url not in known]
    share, usual = outside_of(new), outside_of([*base.ledger()])
    if config.growth is None and lineage.like:
        # do not add words, because then the statistics of this store could no longer be added to
        # those of the other sites
        section = None
    if section is None or share is None or store.basis.table is not None:
        return Growth(store)
    risen = not section.outside_rise or (usual is not None and share - usual > section.outside_rise)
    news = {record.url for record in new}
    brought = [shard for shard in listed if shard.url in news]
    if share <= section.outside_above or not risen or not brought:
        return Growth(store)
    most = section.most_words
    if config.growth is None:
        most = MOST_TIMES * pilot_of(store).vocabulary_size
    before_that = "" if usual is None else f", and {usual:.1%} of the tokens counted before"
    why = f"{share:.1%} of the tokens of new shards are outside the vocabulary{before_that}"
    with journal.step("growth") as found:
        words, why_not = tuple[str, ...](), ""
        if most is not None and n_words >= most:
            why_not = (
                f"the vocabulary has {n_words:,} words, which is the maximum; `rebase` the store "
                "to choose new words"
            )
        else:
            room = section.words if most is None else min(section.words, most - n_words)
            try:
                result = grow(store, brought, run, room)
            except ShardError as error:
                # continue with the old vocabulary, and let the gates judge the model fitted to it
                why_not = str(error)
            else:
                store, words = result.store, result.words
                why_not = "" if words else "none of their words is frequent enough"
        found |= {"outside_share": share, "outside_before": usual, "words": len(words)}
        found |= {"version": store.version, "failed": why_not}
    if why_not:
        return Growth(store, 0, f"{why}; no words were added: {why_not}")
    shown = f"{', '.join(words[:_SHOWN])}{', ...' if len(words) > _SHOWN else ''}"
    which = agreeing(len(words), "word was added", "words were added")
    told = f"{which} ({shown}) and will be counted from the next night"
    return Growth(store, len(words), f"{why}; {told} on")


def last_night(store: MomentStore) -> MomentStore | None:
    """Return the version of the store to which the last nightly run fitted its model, or None."""
    nights = [name for name in store.models if name.startswith(PREFIX)]
    version = store.models[nights[-1]].version if nights else -1
    return store.at(version) if store.commit.keeps(version) else None
