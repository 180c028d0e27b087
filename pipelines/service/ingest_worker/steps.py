"""Steps of a cycle: a step that fails does not stop the others, and is tried again later.

Each failing step has its own wait before the next attempt. Notes in the inbox name the failing
steps, so that a server can show the failures of an accumulator in another process.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from pydantic import TypeAdapter

from streaming_moments.errors import StoreError, StreamingMomentsError
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.log.locks import LockHeld
from streaming_moments.storage.log.schema import Count, checked

T = TypeVar("T")
START = "start"  # name of the step that starts the process in which all other steps run
NAMES = (START, "look", "delete again", "count", "seal", "delete", "expire", "night", "compare")
_NOTE = "steps.json"
# a failed step is tried again after at most this many times the pause between two cycles
_LONGEST = 64


@dataclass(frozen=True)
class FailingStep:
    """A step whose last attempt failed.

    step : one of `NAMES`; "delete" is followed by the identity of a deletion
    failures : number of consecutive failures
    since, last : times of the first and the last failure, ISO 8601 in UTC
    error : reason of the last failure
    """

    step: str
    failures: Count
    since: str
    last: str
    error: str

    @property
    def name(self) -> str:
        """Return the name of the step in `NAMES`, or else the first word of the step."""
        return next((one for one in NAMES if one == self.step), self.step.partition(" ")[0])


_FAILING: TypeAdapter[tuple[FailingStep, ...]] = TypeAdapter(tuple[FailingStep, ...])


@dataclass
class Steps:
    """Runs the steps of a cycle of the accumulator; a failing step does not stop the others.

    inbox : holds the notes of failing steps
    warn : called with a line for each failure
    clock : seconds since any fixed time
    pause : seconds; a failed step is tried again after 2 pauses, then 4, 8, ... and at most 64
    """

    inbox: Inbox
    warn: Callable[[str], None]
    clock: Callable[[], float]
    pause: float
    failed: list[tuple[str, Exception]] = field(default_factory=list)
    _failing: dict[str, FailingStep] = field(default_factory=dict)
    _next: dict[str, float] = field(default_factory=dict)

    def is_due(self, step: str) -> bool:
        """Whether a step may run now; a failed step has to wait before it is tried again."""
        return self._next.get(step, -math.inf) <= self.clock()

    def attempt(self, step: str, act: Callable[[], T], idle_is_fine: bool = True) -> T | None:
        """Run a step if it is due; None if it is not due or fails. `failed` lists failed steps.

        step : one of `NAMES`, or "delete" with an identity
        act : function that does the step; returns None if there was nothing to do
        idle_is_fine : whether a failed step counts as repaired if there was nothing to do

        Raises LockHeld if another process holds the lock for the steps.
        """
        if not self.is_due(step):
            return None
        try:
            found = act()
        except LockHeld:
            raise
        # catch any error, so that the other steps run although this one fails
        except Exception as error:
            self._fail(step, error)
            return None
        if found is not None or (idle_is_fine and step in self._failing):
            self._failing.pop(step, None)
            self._next.pop(step, None)
            self._note(step)
        return found

    def begun(self) -> None:
        """Delete the note which says that an earlier process could not start."""
        self._note(START)

    def keep(self, deletions: frozenset[str]) -> None:
        """Delete the notes about failing deletions that are not in `deletions`."""
        for step in [one for one in self._failing if self._is_of_another(one, deletions)]:
            del self._failing[step]
            self._next.pop(step, None)
        if any(self._is_of_another(one.step, deletions) for one in read_steps(self.inbox)):
            self._note(None, deletions)

    @staticmethod
    def _is_of_another(step: str, deletions: frozenset[str]) -> bool:
        name, _, identity = step.partition(" ")
        return step not in NAMES and name == "delete" and identity not in deletions

    def _fail(self, step: str, error: Exception) -> None:
        self.failed.append((step, error))
        failing = self._failing[step] = _failed_again(step, error, self._failing.get(step))
        wait = self.pause * min(2**failing.failures, _LONGEST)
        self._next[step] = self.clock() + wait
        self.warn(f"{step} failed; next try in {wait:.3g} s or later: {failing.error}")
        self._note(step)

    def _note(self, step: str | None, deletions: frozenset[str] | None = None) -> None:
        """Write a note with the current state of one step; keep the notes of all other steps.

        If `deletions` is given, delete the notes about deletions that are not in it.
        """
        try:
            before = read_steps(self.inbox)
            after = {one.step: one for one in before}
            if step is not None:
                after.pop(step, None)
                if step in self._failing:
                    after[step] = self._failing[step]
            if deletions is not None:
                after = {
                    name: one
                    for name, one in after.items()
                    if not self._is_of_another(name, deletions)
                }
            found = tuple(after[name] for name in sorted(after))
            if found != before:
                _write(self.inbox, found)
        except StoreError as error:
            self.warn(f"failures cannot be recorded in the inbox: {error}")


def note_failed_start(inbox: Inbox, error: Exception) -> None:
    """Note that the accumulator could not start at all, so that servers show the reason."""
    before = {one.step: one for one in read_steps(inbox)}
    after = {**before, START: _failed_again(START, error, before.get(START))}
    _write(inbox, tuple(after[name] for name in sorted(after)))


def _failed_again(step: str, error: Exception, before: FailingStep | None) -> FailingStep:
    now, told = datetime.now(UTC).isoformat(timespec="seconds"), str(error)
    if not isinstance(error, StreamingMomentsError):
        told = f"{type(error).__name__}: {error}{_place_of(error)}"
    failures = 1 if before is None else before.failures + 1
    return FailingStep(step, failures, now if before is None else before.since, now, told)


def _write(inbox: Inbox, found: tuple[FailingStep, ...]) -> None:
    content = seal({"failing": _FAILING.dump_python(found, mode="json")})
    inbox.folder.write(_NOTE, content)


def read_steps(inbox: Inbox) -> tuple[FailingStep, ...]:
    """Read the notes about failing steps, sorted by name."""
    data, where = inbox.folder.find(_NOTE), f"{inbox.folder.url}/{_NOTE}"
    if data is None:
        return ()
    return checked(_FAILING, unseal(data, where).get("failing"), f"{where} is invalid")


def _place_of(error: Exception) -> str:
    """Return the place in the code at which an unexpected error was raised."""
    *_, frame = traceback.extract_tb(error.__traceback__)
    return f" ({frame.filename}:{frame.lineno})"
