"""The step of the nightly run that adds the statistics of other sites."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from streaming_moments.errors import StoreError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.sites.merge import in_turn, pull_as_json, pull_line
from streaming_moments.pipelines.nightly.config import MergeSection
from streaming_moments.pipelines.nightly.journal import Journal
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.commits import Origin
from streaming_moments.storage.log.locks import LockHeld
from streaming_moments.storage.merging.pulling import Pull, pull_together
from streaming_moments.storage.store.store import MomentStore


def merged(store: MomentStore, section: MergeSection, run: Run, journal: Journal) -> MomentStore:
    """Add the statistics of every store in section `[merge]`, in the order of `in_turn`.

    If a store cannot be read, the nightly run goes on with the version that was merged before.
    Raises StoreError if there is no such version, or if a store is older than the section allows.
    If the merge refuses a store, a user must decide. So the error stops the run, but only after the
    other stores are merged.
    """
    with journal.step("merge") as found:
        told: list[str] = []
        pulls: list[dict[str, object]] = []
        found |= {"told": told, "origins": pulls}

        def take(hub: MomentStore, urls: Sequence[str]) -> tuple[Pull, ...]:
            options = run.storage_options
            try:
                opened = [
                    MomentStore.open(url, storage_options=options, whole=False) for url in urls
                ]
                done = pull_together(hub, opened, section.unique, section.least_documents)
            except LockHeld:
                raise  # this run has lost its lock, which is not an error of another store
            except StoreError as error:
                hub = hub.latest()
                for url in urls:
                    known = _known(hub, url)
                    if known is None:
                        raise
                    told.append(f"{url} cannot be read, so version {known.version} stays: {error}")
                return ()
            told.extend(map(pull_line, done))
            pulls.extend(map(pull_as_json, done))
            return done

        store = in_turn(store, section.from_, take)
        found["version"] = store.version
    _require_young(store, section)
    return store


def _known(store: MomentStore, url: str) -> Origin | None:
    """Return the origin that an earlier merge read at a URL, if there is one."""
    place = Folder.at(url).url
    return next((one for one in store.commit.origins.values() if one.url == place), None)


def _require_young(store: MomentStore, section: MergeSection) -> None:
    if section.max_age is None:
        return
    now = datetime.now(UTC)
    late = [
        f"origin {name} has not changed since {one.time[:16]} UTC"
        for name, one in store.commit.origins.items()
        if now - datetime.fromisoformat(one.time) > section.max_age
    ]
    if late:
        raise StoreError(
            f"{'; '.join(late)}, which is longer ago than [merge] max_age allows",
            "find out why these sites count nothing, raise max_age, or remove the sites by "
            "{forget.origin}",
        )
