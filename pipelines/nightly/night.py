"""The nightly run: count new shards, measure drift, rebase if due, refit, judge, publish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any

from streaming_moments.errors import StoreError, StreamingMomentsError
from streaming_moments.models.alpha0 import AUTO, WITHOUT_HALVES
from streaming_moments.models.base import Model
from streaming_moments.models.states import states_of
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.cluster.progress import Silent, StepProgress
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.exit_codes import ExitCode
from streaming_moments.pipelines.jobs.compact import compact_when_many
from streaming_moments.pipelines.jobs.update import UpdateResult, update
from streaming_moments.pipelines.nightly.config import NightlyConfig
from streaming_moments.pipelines.nightly.gates import judged, reasons_of
from streaming_moments.pipelines.nightly.history import NightHistory, read_history
from streaming_moments.pipelines.nightly.journal import Heartbeat, Journal
from streaming_moments.pipelines.nightly.keys import PREFIX
from streaming_moments.pipelines.nightly.outputs import write_night
from streaming_moments.pipelines.nightly.plain_words import of_nights
from streaming_moments.pipelines.nightly.report import (
    NightReport,
    UndecidedModel,
    filed_after,
    undecided_model,
)
from streaming_moments.pipelines.nightly.steps.found_shards import found_shards
from streaming_moments.pipelines.nightly.steps.merge import merged
from streaming_moments.pipelines.nightly.steps.unused_keys import (
    changed_keys,
    left_out_topics,
    unused_options,
)
from streaming_moments.pipelines.reports.kinds.registry import sizes_of, status_of_any
from streaming_moments.pipelines.reports.metrics import require_collected
from streaming_moments.pipelines.reports.outside_words import slow_tokeniser
from streaming_moments.pipelines.reports.page import StepReport
from streaming_moments.pipelines.reports.plain_values import json_value
from streaming_moments.pipelines.reports.status import Status, spelled
from streaming_moments.printing.remedies import Sayable
from streaming_moments.quality.drift import Drift
from streaming_moments.quality.matching import TopicMatching, numbered_like
from streaming_moments.quality.moves import with_moves
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.commit_log import CommitLog
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.log.locks import Lock, LockHeld
from streaming_moments.storage.operations.labels import succession
from streaming_moments.storage.operations.lineages import states_compared
from streaming_moments.storage.operations.polishing import PolishingFolder
from streaming_moments.storage.operations.windows import StatisticsSource
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.model_changes import Succession, TagMove
from streaming_moments.storage.store.store import MomentStore

if TYPE_CHECKING:
    from streaming_moments.pipelines.cluster.cluster import Cluster


def nightly(
    config: NightlyConfig,
    cluster: Cluster,
    tell: Callable[[StepReport], None],
    progress: StepProgress | None = None,
) -> NightReport:
    """Do one nightly run; write its report, its page, and metrics if requested.

    Every step makes one or several commits, and first checks whether an earlier run has done it
    already. So the next run finishes what a killed run has begun.

    Parameters
    ----------
    config : NightlyConfig
        Result of `read_config`.
    cluster : Cluster
        Where to run.
    tell : callable
        Called with each finished step.
    progress : StepProgress, optional
        Receives finished shards and row blocks.

    Raises
    ------
    LockHeld
        Another run holds the lock for longer than `wait`, or took over from this one.
    StreamingMomentsError
        As in `update`, `rebase` and `refit`; the report lists the finished steps.
    """
    if config.metrics is not None:
        require_collected(config.metrics.textfile)
    started = datetime.now(UTC).isoformat(timespec="microseconds")
    begun = NightReport(config.store, started, tag=config.tag)
    options, history = config.storage_options, NightHistory()
    output, folder = Folder.at(config.output, options), Folder.at(config.store, options)
    for place in (folder, output):
        place.require_bucket()
    missing = config.create is not None and CommitLog(folder).latest_version() is None
    if missing and not output.names(""):
        # check that there are shards before anything is written, because the command may run in the
        # wrong folder
        found_shards(config, None).require_data(config, folder)
    journal = Journal(Lock.acquire(folder, config.lock_expiry, config.wait), tell)
    try:
        try:
            # check only a local folder: whether the run may write to a bucket, only a write can
            # show
            if output.is_local:
                # check permissions and free space now, so that the run does not fail at its end
                output.require_room()
            history = read_history(output, config.store)
            begun = replace(begun, filed=filed_after(begun.started, history.latest))
            beating = Heartbeat(journal, progress or Silent())
            seconds = config.update.commit_every.total_seconds()
            run = Run(cluster, beating, config.update.limits, options, seconds)
            report = _night(begun, config, folder, run, journal, history)
        except Exception as error:
            if isinstance(error, StreamingMomentsError):
                text, code = error.said(of_nights), ExitCode.INPUT
            else:
                text, code = output.explain(error), ExitCode.FAULT
            failed = replace(begun, error=text, exit_code=code)
            # if another run holds the lock now, this report must not become the latest one
            latest = not isinstance(error, LockHeld)
            begun_at = monotonic()
            url = write_night(_ended(failed, journal, history), config, history, latest)
            # do not use the journal for this step: it needs the lock, which may be lost
            written = {"url": url, "outcome": failed.outcome}
            tell(StepReport("report", round(monotonic() - begun_at, 3), written))
            raise
        with journal.step("report") as found:
            ended = _ended(report, journal, history)
            found |= {"url": write_night(ended, config, history), "outcome": ended.outcome}
            if ended.undecided is not None:
                found["undecided"] = asdict(ended.undecided)
        return ended
    finally:
        journal.lock.release()


def _night(
    report: NightReport,
    config: NightlyConfig,
    folder: Folder,
    run: Run,
    journal: Journal,
    history: NightHistory,
) -> NightReport:
    with journal.step("list") as found:
        there = _opened(config) if CommitLog(folder).latest_version() is not None else None
        finding = found_shards(config, there)
        if there is None:
            finding.require_data(config, folder)
        listed = finding.shards
        warnings = [
            *unused_options(config),
            *left_out_topics(config, there),
            *(() if there is None else changed_keys(config.create, there)),
            *finding.warnings,
        ]
        found |= {"shards": len(listed), "warnings": warnings, "unmatched": [*finding.unmatched]}
        found |= {"told": ["the service has no documents yet"]} if finding.inbox_is_empty else {}
    report = replace(report, warnings=tuple(warnings))
    before = _store(config, folder, listed, run, journal)
    if before is None:
        return replace(report, outcome="nothing new", exit_code=ExitCode.NOTHING_NEW)
    if config.merge is not None:
        before = merged(before, config.merge, run, journal)
    updated = _updated(before, config, listed, run, journal)
    store = updated.store
    report = replace(
        report,
        counted=updated.counted,
        documents=updated.documents,
        bad=tuple((error.url, error.reason) for error in updated.bad),
        published_before=store.commit.tags.get(config.tag),
        published=store.commit.tags.get(config.tag),
    )
    tag = TagMove(config.tag, report.published_before)
    idle = replace(
        report,
        outcome="nothing new",
        undecided=_undecided(history, store, config.tag),
        exit_code=ExitCode.BAD_SHARDS if updated.bad else ExitCode.NOTHING_NEW,
    )
    news, basis = _has_news(store), store.commit.lineage.basis
    if not news and store.commit.staged is None:
        return _of_store(idle, store)
    # imported here so that runs without new data start faster
    from streaming_moments.pipelines.nightly.steps.chosen_model import (
        chosen_model,
        source_of,
    )
    from streaming_moments.pipelines.nightly.steps.vocabulary import grown, rebased
    from streaming_moments.pipelines.reports.model_pages.registry import reported
    from streaming_moments.pipelines.reports.samples import sample_documents

    published = None if report.published is None else store.load_any_model(report.published)
    drift = _drift(store, report.published, published, config, run, journal)
    store, why = rebased(store, drift, config, run, journal)
    report = replace(report, drift=drift, rebase_reasons=why)
    if not why:
        growth = grown(before, store, listed, config, run, journal)
        store = growth.store
        report = replace(report, words_added=growth.words, growth=growth.told)
    if not news and store.commit.lineage.basis == basis:
        # nothing is new: the run only tried to finish an interrupted rebase, which cannot continue
        return _of_store(replace(idle, drift=drift, rebase_reasons=why), store)
    with journal.step("refit") as found:
        source = source_of(store, config.refit)
        chosen = chosen_model(source, config.refit, run)
        model = chosen.model
        found |= model.summary()
        if config.refit.auto and config.refit.topical:
            found["refined"] = model.refined
        if chosen.why:
            found["why"] = chosen.why
    work = None
    if config.refit.polish:
        model, work = _polished(source, model, config, run, journal)
    matching, after = None, None
    if published is not None and report.published is not None:
        model, matching = _matched(store, model, published, config, journal)
    if matching is not None and report.published is not None:
        kept = {pair.before: pair.after for pair in matching.kept}
        after = Succession(report.published, kept)
    with journal.step("judge") as found:
        fitted = drift
        if store.foundation.by_length:
            effective = source.length_histogram().effective_documents
            fitted = replace(drift, effective_documents=effective)
        gates = judged(model, published, fitted, config.gates)
        reasons = reasons_of(gates)
        found |= {"gates": len(gates), "failed": list(reasons)}
    name = f"{PREFIX}{store.version}"
    with journal.step("publish") as found:
        message = f"nightly: {'rejected: ' + '; '.join(reasons) if reasons else 'published'}"
        moved = None if reasons else tag
        store = store.save_model(name, model, message, moved, after or succession(store, model))
        if work is not None:
            work.delete()
        found |= {"model": name, "published": not reasons, "version": store.version}
        samples = {}
        if config.sample_documents and config.refit.topical:
            looked = sample_documents(store, store, model, config.storage_options)
            samples = {topic: (one,) for topic, one in looked.items()}
        topics = reported(store, name, model, samples)
    code = ExitCode.BAD_SHARDS if updated.bad else ExitCode.DONE
    return _of_store(
        replace(
            report,
            outcome="rejected" if reasons else "published",
            exit_code=ExitCode.REJECTED if reasons else code,
            candidates=chosen.tried,
            single=chosen.single,
            gates=gates,
            reasons=reasons,
            undecided=undecided_model(config.store, config.tag, name, reasons, report.started)
            if reasons
            else None,
            model=name,
            published=store.commit.tags.get(config.tag),
            topics=topics,
            matching=matching,
            spectrum=tuple(model.spectrum.tolist()) if config.refit.topical else (),
            exact_spectrum=tuple(model.exact_spectrum.tolist()) if config.refit.topical else (),
        ),
        store,
    )


def _opened(config: NightlyConfig) -> MomentStore:
    return MomentStore.open(config.store, storage_options=config.storage_options).writable()


def _store(
    config: NightlyConfig, folder: Folder, listed: Sequence[Shard], run: Run, journal: Journal
) -> MomentStore | None:
    """Return the store, created if it is missing; None if there is no data yet."""
    if CommitLog(folder).latest_version() is not None:
        return journal.fenced(_opened(config))
    if config.create is None:
        raise StoreError(
            f"there is no store at {folder.url}; create it with `streaming-moments create`, or "
            "add a [create] section to the configuration"
        )
    if not listed:
        return None
    from streaming_moments.pipelines.jobs.kinds.create_kinds import create_kind
    from streaming_moments.pipelines.reports.outside_words import language_line

    with journal.step("create") as found:
        section, told = config.create, list[str]()
        found["told"] = told
        made = create_kind(
            config.store,
            listed,
            shape=section.shape,
            counting=section.counting,
            options=section.pilot,
            run=replace(run, tell=lambda line: told.append(_in_keys(line))),
        )
        told += [_in_keys(line) for line in [language_line(made)] if line]
        found |= {"kind": made.kind, **sizes_of(made)}
    return journal.fenced(made)


def _updated(
    store: MomentStore, config: NightlyConfig, listed: Sequence[Shard], run: Run, journal: Journal
) -> UpdateResult:
    with journal.step("update") as found:
        section = config.update
        told = found["told"] = list[str]()
        run = replace(run, tell=lambda line: told.append(str(line)))
        result = update(
            store,
            listed,
            run,
            section.skip_bad_shards,
            unique=section.unique,
            include_moved=section.include_moved,
        )
        store = compact_when_many(result.store, section.compact_after, run, section.compact_by)
        result = replace(result, store=store)
        if (slow := slow_tokeniser(store, result.tokeniser_share, "shards")) is not None:
            told.append(str(slow))
        found |= {
            "counted": result.counted,
            "already": result.already,
            "documents": result.documents,
            "tokens": result.tokens,
            "outside": result.outside,
            "bad": [error.url for error in result.bad],
            "copies": [list(pair) for pair in result.copies],
            "forgotten": [list(pair) for pair in result.forgotten],
            "version": result.store.version,
        }
    return result


def _undecided(history: NightHistory, store: MomentStore, tag: str) -> UndecidedModel | None:
    """Return the model that an earlier run rejected, unless a user has since decided on it."""
    last = next((one for one in reversed(history.nights) if one.outcome != "failed"), None)
    if last is None or last.undecided is None:
        return None
    untouched = store.commit.tags.get(tag) == last.published
    return last.undecided if untouched and last.undecided.model in store.models else None


def _has_news(store: MomentStore) -> bool:
    """Whether the store has changed since the state to which the last run fitted its model."""
    nights = [name for name in store.models if name.startswith(PREFIX)]
    if not nights:
        return len(store.ledger()) > 0
    version = store.models[nights[-1]].version
    if not store.commit.keeps(version):
        return True
    fitted = store.at(version)
    same = fitted.foundation.fingerprint == store.foundation.fingerprint
    return not same or _contents(fitted) != _contents(store)


def _contents(store: MomentStore) -> Counter[ShardRecord]:
    """Return the records of the counted shards without their names, which a renaming changes."""
    return Counter(record.unnamed for record in store.ledger())


def _drift(
    store: MomentStore,
    name: str | None,
    published: Model | None,
    config: NightlyConfig,
    run: Run,
    journal: Journal,
) -> Drift:
    from streaming_moments.pipelines.jobs.drift.measure_drift import measure_drift

    with journal.step("drift") as found:
        fitted = -1 if name is None else store.models[name].version
        before = store.at(fitted) if store.commit.keeps(fitted) else None
        topics, first = config.refit.topics[0], config.refit.alpha0[0]
        # use the number of topics and the alpha0 of the configuration, unless the published model
        # has its own
        alpha0 = WITHOUT_HALVES if first == AUTO else first
        if published is not None and published.moments is not None:
            topics, alpha0 = published.moments
        drift = measure_drift(store, before, topics, alpha0, run)
        found |= json_value(asdict(drift))
    return drift


def _polished(
    source: StatisticsSource,
    model: TopicModel,
    config: NightlyConfig,
    run: Run,
    journal: Journal,
) -> tuple[TopicModel, PolishingFolder]:
    """Improve the model by passes over the counted documents that still exist, and return it."""
    from streaming_moments.pipelines.jobs.polish import polish
    from streaming_moments.pipelines.jobs.refit import with_coherence

    with journal.step("polish") as found:
        going = config.update.skip_bad_shards
        result = polish(
            source,
            model,
            run,
            passes=config.refit.polish,
            skip_bad_shards=going,
            allow_missing=going,
        )
        polished = with_coherence(source, result.model, run)
        found |= asdict(result.note) | polished.mean_coherences
        found["bad"] = [error.url for error in result.bad]
    return polished, result.work


def _matched(
    store: MomentStore,
    model: Any,
    published: Model,
    config: NightlyConfig,
    journal: Journal,
) -> tuple[Any, TopicMatching | None]:
    """Renumber the topics or states of the model so that they match those of the published model.

    A topic gets the number of the topic that it matches in the published model. If the two models
    cannot be compared, the model stays unchanged.
    """
    if states_of(published) is None or states_of(model) is None:
        return model, None
    with journal.step("match") as found:
        matching = states_compared((store, published), (store, model), config.refit.rule)
        if matching is None:
            return model, None
        renumbered, matching = numbered_like(model, matching)
        matching = with_moves(matching, published, renumbered)
        found |= {
            "kept": len(matching.kept),
            "moved": [pair.after for pair in matching.kept if pair.moved],
            "within_noise": [pair.after for pair in matching.kept if pair.moved is False],
            "furthest": max((pair.distance for pair in matching.kept), default=None),
            "born": [lone.topic for lone in matching.born],
            "gone": [lone.topic for lone in matching.gone],
            "split": [mix.whole for mix in matching.split],
            "merged": [mix.whole for mix in matching.merged],
        }
    return renumbered, matching


def _in_keys(line: Sayable | str) -> str:
    return line.said(of_nights) if isinstance(line, Sayable) else line


def _of_store(report: NightReport, store: MomentStore) -> NightReport:
    status = status_of_any(store)
    if isinstance(status, Status):
        status = spelled(status, store, of_nights)
    return replace(report, version=store.version, status=status)


def _ended(report: NightReport, journal: Journal, history: NightHistory) -> NightReport:
    finished = datetime.now(UTC).isoformat(timespec="microseconds")
    last = finished if report.outcome == "published" else history.last_published
    return replace(report, finished=finished, last_published=last, steps=tuple(journal.steps))
