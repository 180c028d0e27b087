"""Which fields a document in a request has, for each kind of store."""

from __future__ import annotations

from dataclasses import dataclass

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.service.limits import LimitsSection
from streaming_moments.pipelines.service.validation import Countable
from streaming_moments.storage.dates import NO_PATTERN
from streaming_moments.storage.inbox.records import RecordShape
from streaming_moments.storage.kinds.registry import fields_of, takes_texts
from streaming_moments.storage.store.store import MomentStore


def shape_of(store: MomentStore, limits: LimitsSection) -> RecordShape:
    """Return which fields a document has that is sent to a store.

    Raises InvalidInput if the store reads shards other than JSON Lines, or finds days in URLs by a
    pattern, or if its records cannot be sent one by one.
    """
    form = store.form
    if form.kind not in (None, "jsonl"):
        raise InvalidInput(
            f"{store.url} was created with --format {form.kind}, but the service writes JSON "
            "Lines; create a store without --format"
        )
    dates = store.dates
    if dates.pattern not in (None, NO_PATTERN):
        raise InvalidInput(
            f"{store.url} finds days in URLs by {dates.pattern!r}, but the service names shards by "
            "days such as 2026-11-23; create a store without --date-pattern"
        )
    counted, judge = fields_of(store), Countable(store)
    days, light = limits.days, judge.light
    return RecordShape(counted, dates.column, limits.document, days, judge.why_not, light)


@dataclass(frozen=True, eq=False)
class Intake:
    """Which documents a store accepts, until its vocabulary or settings change. Make one with `of`.

    `shape` has the fields of a document, and decides whether a long document can be counted.
    """

    shape: RecordShape
    takes_texts: bool

    @classmethod
    def of(cls, store: MomentStore, limits: LimitsSection) -> Intake:
        """Return which documents a store accepts; raises what `shape_of` raises."""
        return cls(shape_of(store, limits), takes_texts(store))
