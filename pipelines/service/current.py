"""What the service knows now: store, model, tokens and inbox, looked at anew every few seconds."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from streaming_moments.errors import InvalidInput, StreamingMomentsError
from streaming_moments.pipelines.service.accumulating.steps import FailingStep, read_steps
from streaming_moments.pipelines.service.config import ServiceConfig
from streaming_moments.pipelines.service.intake import shape_of, takes_texts
from streaming_moments.pipelines.service.published import Published, answering
from streaming_moments.pipelines.service.tokens import Token, read_tokens
from streaming_moments.storage.inbox.inbox import Backlog, Inbox
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.log.layout import commit_file
from streaming_moments.storage.store.store import MomentStore

T = TypeVar("T")
_MODEL = "model"  # that which could not be looked at


@dataclass(frozen=True)
class View:
    """What is known at a time; it never changes.

    Parameters
    ----------
    store : MomentStore
        At the latest version.
    published : Published or None
        The model that answers.
    tokens : tuple of Token or None
        Who may ask; None where everybody on this machine may.
    backlog : Backlog
        What waits in the inbox.
    sealed : int
        Number of a seal that there is.
    steps : tuple of FailingStep
        Steps of the accumulator that fail.
    problems : mapping
        What could not be looked at, by its name, and why: the rest is as it was before.
    """

    store: MomentStore
    published: Published | None = None
    tokens: tuple[Token, ...] | None = None
    backlog: Backlog = field(default_factory=Backlog)
    sealed: int = 0
    steps: tuple[FailingStep, ...] = ()
    problems: dict[str, str] = field(default_factory=dict)


class Current:
    """The latest view, renewed by a thread of its own once it is started.

    Parameters
    ----------
    config : ServiceConfig
        What to look at.
    tell : callable
        Told in a line of each problem that is new, or over.

    Raises
    ------
    StreamingMomentsError
        The store or the inbox cannot be opened, or the tokens not be read.
    """

    def __init__(self, config: ServiceConfig, tell: Callable[[str], None]) -> None:
        self._config = config
        self._tell = tell
        self.inbox = Inbox.open(config.inbox_url, config.storage_options or None)
        self.seals = SealLog(self.inbox)
        store = MomentStore.open(config.store, storage_options=config.storage_options or None)
        self.shape, self.takes_texts = shape_of(store, config.limits), takes_texts(store)
        self._tokens_seen: tuple[float, int] | None = None
        self.view = View(store, tokens=self._read_tokens())
        self._over, self._looking = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._keep, name="looking at the store", daemon=True)
        self.look()

    def start(self) -> None:
        """Renew the view from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Renew it no more."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def look(self) -> View:
        """Renew the view now; what cannot be looked at stays as it was."""
        with self._looking:
            return self._look()

    def _look(self) -> View:
        before, problems = self.view, dict[str, str]()

        def tried(name: str, look: Callable[[], T], otherwise: T) -> T:
            try:
                return look()
            except StreamingMomentsError as error:
                problems[name] = str(error)
            except Exception as error:  # a service goes on with what it has, and says so
                problems[name] = f"{type(error).__name__}: {error}"
            return otherwise

        store = tried("store", lambda: _latest(before.store), before.store)
        published = before.published
        if published is None or store.version != before.store.version or _MODEL in before.problems:
            published = tried(_MODEL, lambda: self._published(store, before), published)
        tokens = tried("tokens", self._read_tokens, before.tokens)
        backlog = tried("inbox", self._backlog, before.backlog)
        sealed = tried("seals", self.seals.latest, before.sealed)
        steps = tried("steps", lambda: read_steps(self.inbox), before.steps)
        self.view = View(store, published, tokens, backlog, sealed, steps, problems)
        for name in sorted(problems.keys() | before.problems.keys()):
            if problems.get(name) != before.problems.get(name):
                self._tell(f"{name}: {problems.get(name, 'looked at again')}")
        return self.view

    def _keep(self) -> None:
        while not self._over.wait(self._config.refresh.total_seconds()):
            self.look()

    def _published(self, store: MomentStore, before: View) -> Published | None:
        known = before.published
        name = answering(store, self._config.tag)
        if known is not None and known.name == name and known.reference == store.models[name]:
            return replace(known, version=store.version)
        found = Published.of(store, self._config.tag)
        if found is not None:
            found.warm()
        return found

    def _backlog(self) -> Backlog:
        found = self.inbox.backlog()
        if not found.batches:
            # the age of what waits is asked by writing: who is ready can before anything came
            self.inbox.folder.clock()
        return found

    def _read_tokens(self) -> tuple[Token, ...] | None:
        path = self._config.tokens
        if path is None:
            return None
        try:
            state = os.stat(path)
        except OSError as error:
            raise InvalidInput(
                f"{path} cannot be read ({error.strerror}); make it by `streaming-moments token "
                "add`"
            ) from error
        seen = (state.st_mtime, state.st_ino)
        if seen != self._tokens_seen:
            found = read_tokens(path)
            self._tokens_seen = seen
            return found
        return self.view.tokens


def _latest(store: MomentStore) -> MomentStore:
    """The store at its latest version; one look where that is no other, however long the log."""
    gone_on = store.folder.exists(commit_file(store.version + 1))
    return store.latest() if gone_on else store
