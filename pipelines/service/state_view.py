"""Current view of store, model, tokens and inbox, updated every few seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from streaming_moments.errors import InvalidInput, StoreError, StreamingMomentsError
from streaming_moments.pipelines.service.config import ServiceConfig
from streaming_moments.pipelines.service.counting_progress import Counting, counting_now
from streaming_moments.pipelines.service.ingest_worker.steps import FailingStep, read_steps
from streaming_moments.pipelines.service.published import Published, answering
from streaming_moments.pipelines.service.record_schema import Intake
from streaming_moments.pipelines.service.tokens import TokenFile, Tokens
from streaming_moments.storage.inbox.inbox import Backlog, Inbox
from streaming_moments.storage.inbox.owners import InboxOfAnother, Owner, require_owner
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.log.layout import commit_file
from streaming_moments.storage.store.store import MomentStore

T = TypeVar("T")
# keys of `View.problems`: names of parts of the service that may have a problem
STORE, INBOX, OWNER, TOKENS, INTAKE = "store", "inbox", "owner", "tokens", "documents"
_MODEL, _SEALS, _STEPS = "model", "seals", "steps"
COUNTING = "counting"


@dataclass(frozen=True)
class View:
    """What is known about the service at one time; a View never changes.

    store : the store at its latest version
    intake : which documents this version of the store accepts; None if the service accepts none
    published : the model that answers calls
    tokens : tokens of users; None if anyone on this machine may use the service without a token
    backlog : pending documents of the inbox
    sealed : number of the latest known seal
    steps : failing steps of the accumulator
    problems : for each part of the service that could not be checked, its name and the reason; the
        view then has the last known state of the part. Under "counting" is the reason why no
        documents are counted
    counting : whether sealed documents are counted, and which shards are set aside
    """

    store: MomentStore
    intake: Intake | None = None
    published: Published | None = None
    tokens: Tokens | None = None
    backlog: Backlog = field(default_factory=Backlog)
    sealed: int = 0
    steps: tuple[FailingStep, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    counting: Counting = field(default_factory=Counting)


class Current:
    """Holds the latest view of the service; after `start`, threads update it.

    A separate thread updates the tokens, so that a removed token is refused even while the storage
    does not respond. `tell` gets a line about each new or solved problem. `replaced` is called if
    another store appears at the URL of the store. Making a Current raises an error if the store,
    the inbox or the token file cannot be read.
    """

    def __init__(
        self,
        config: ServiceConfig,
        tell: Callable[[str], None],
        replaced: Callable[[], None] = lambda: None,
    ) -> None:
        self._config = config
        self._tell = tell
        self._replaced = replaced
        self._options = config.storage_options or None
        store = MomentStore.open(config.store, storage_options=self._options)
        self._owner = Owner.at(config.store, self._options)
        self.inbox = Inbox.open(config.inbox_url, self._options, self._owner)
        self.seals = SealLog(self.inbox)
        self._token_file = None if config.tokens is None else TokenFile(config.tokens)
        tokens = None if self._token_file is None else self._token_file.read()
        self.view = View(store, Intake.of(store, config.limits), tokens=tokens)
        self._over, self._looking = threading.Event(), threading.Lock()
        self._setting = threading.Lock()
        self._looked = time.monotonic()
        self._threads = [
            threading.Thread(target=self._keep, args=(look,), name=name, daemon=True)
            for look, name in (
                (self.look, "looking at the store"),
                (self.look_at_tokens, "looking at the tokens"),
            )
        ]
        self.look()

    @property
    def intake(self) -> Intake:
        """Which documents the store accepts; raises StoreError, with the reason, if none."""
        view = self.view
        if view.intake is None:
            raise StoreError(view.problems.get(INTAKE, "the store accepts no documents"))
        return view.intake

    @property
    def silence(self) -> float:
        """Seconds since the view was last updated; grows while the storage does not answer."""
        return time.monotonic() - self._looked

    def start(self) -> None:
        """Start updating the view."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop updating the view."""
        self._over.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def look(self) -> View:
        """Update the view now.

        If the check of a part fails, the view keeps the last known state of this part. Only tokens
        become invalid.
        """
        self.look_at_tokens()
        with self._looking:
            self._look()
        self._looked = time.monotonic()
        return self.view

    def look_at_tokens(self) -> None:
        """Update the tokens now; if the file cannot be read, no token is valid."""
        if self._token_file is None:
            return
        with self._setting:
            tokens, problems = Tokens(), dict[str, str]()
            try:
                tokens = self._token_file.read()
            except InvalidInput as error:
                problems[TOKENS] = str(error)
            before = self.view.problems
            others = {name: why for name, why in before.items() if name != TOKENS}
            self.view = replace(self.view, tokens=tokens, problems=others | problems)
        self._tell_news(before, self.view.problems, {TOKENS})

    def _look(self) -> None:
        before, problems = self.view, dict[str, str]()

        def tried(name: str, look: Callable[[], T], otherwise: T) -> T:
            try:
                return look()
            except Exception as error:  # continue with the last known state, and report the problem
                problems[name] = _said_of(error)
            return otherwise

        store = tried(STORE, lambda: self._latest(before.store), before.store)
        intake, published = before.intake, before.published
        if store.commit.lineage != before.store.commit.lineage or INTAKE in before.problems:
            # if the store was rebuilt with another vocabulary, check documents with that from now
            # on
            intake = tried(INTAKE, lambda: Intake.of(store, self._config.limits), None)
        if published is None or store is not before.store or _MODEL in before.problems:
            published = tried(_MODEL, lambda: self._published(store, before), published)
        backlog = tried(INBOX, self._backlog, before.backlog)
        try:
            require_owner(self.inbox.folder, self._owner)
        except InboxOfAnother as error:
            problems[OWNER] = str(error)
        except StoreError as error:
            problems.setdefault(INBOX, str(error))
        sealed = tried(_SEALS, self.seals.latest, before.sealed)
        steps = tried(_STEPS, lambda: read_steps(self.inbox), before.steps)
        unusable = problems.get(INBOX) or problems.get(OWNER)
        age, most = (one.total_seconds() for one in (backlog.age, self._config.limits.inbox_age))
        overdue = age if age >= most else None
        counting = tried(
            COUNTING,
            lambda: counting_now(self.inbox, sealed, steps, before.counting, unusable, overdue),
            before.counting,
        )
        problem = counting.problem(most)
        if problem is not None:
            problems[COUNTING] = problem
        with self._setting:
            now = self.view
            if TOKENS in now.problems:
                problems[TOKENS] = now.problems[TOKENS]
            self.view = View(
                store, intake, published, now.tokens, backlog, sealed, steps, problems, counting
            )
        self._tell_news(before.problems, problems, problems.keys() | before.problems.keys())

    def _tell_news(
        self, before: Mapping[str, str], after: Mapping[str, str], names: set[str]
    ) -> None:
        for name in sorted(names):
            if after.get(name) != before.get(name):
                self._tell(f"{name}: {after.get(name, 'can be checked again')}")

    def _keep(self, look: Callable[[], object]) -> None:
        while not self._over.wait(self._config.refresh.total_seconds()):
            look()

    def _latest(self, store: MomentStore) -> MomentStore:
        """Open the store at its latest version; if there is no newer version, this takes two reads.

        Reads everything again if the store was rebuilt, or if another store is at its URL.
        """
        if not store.is_there():
            found = MomentStore.open(store.url, storage_options=self._options)
            self._owner = Owner.at(store.url, self._options)
            self._replaced()
            return found
        if not store.folder.exists(commit_file(store.version + 1)):
            return store
        latest = store.latest()
        if latest.commit.lineage == store.commit.lineage:
            return latest
        return MomentStore.open(store.url, storage_options=self._options)

    def _published(self, store: MomentStore, before: View) -> Published | None:
        known = before.published
        name = answering(store, self._config.tag)
        if known is not None and known.name == name and known.reference == store.models.get(name):
            return replace(known, version=store.version)
        found = Published.of(store, self._config.tag)
        if found is not None:
            try:
                found.warm()
            # continue, because pages can show a model even if it cannot read texts
            except Exception as error:
                self._tell(f"{_MODEL}: {found.name} reads no texts: {_said_of(error)}")
        return found

    def _backlog(self) -> Backlog:
        found, folder = self.inbox.backlog(), self.inbox.folder
        # Check that the storage has room. A bucket with pending batches needs no check: to read the
        # clock of the bucket, `backlog` has just written a file there. On a local disk the clock
        # can be read even if the disk is full.
        if folder.is_local or not found.batches:
            folder.require_room()
        return found


def _said_of(error: Exception) -> str:
    """Return the message of an error, preceded by its type unless this package raised the error."""
    own = isinstance(error, StreamingMomentsError)
    return str(error) if own else f"{type(error).__name__}: {error}"
