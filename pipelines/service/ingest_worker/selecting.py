"""Compare numbers of topics or states for a user, but not during the HTTP request.

The page on which a user requests the comparison leaves a note in the inbox. An accumulator finds
the note, compares, and stores the result in the inbox.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, cast

from pydantic import TypeAdapter

from streaming_moments.errors import InvalidInput, StoreError, StreamingMomentsError
from streaming_moments.models.numbers.number_search import numbers_of_topics
from streaming_moments.pipelines.jobs.candidates import Selection
from streaming_moments.pipelines.jobs.select import select
from streaming_moments.pipelines.jobs.select_states import model_selected, select_states
from streaming_moments.pipelines.reports.plain_values import json_value
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.schema import checked
from streaming_moments.storage.segments.models import model_called

if TYPE_CHECKING:
    from streaming_moments.pipelines.cluster.run import Run
    from streaming_moments.storage.inbox.inbox import Inbox
    from streaming_moments.storage.store.store import MomentStore

_ASKED, _FOUND = "selection/asked.json", "selection/found.json"
_STATES = range(1, 9)


@dataclass(frozen=True)
class Compared:
    """A comparison of numbers of topics or states at a version of the store.

    selection : the result; None if nothing can be compared, and then `refusal` says why
    by_night : whether a nightly job made the comparison
    """

    version: int
    selection: Selection | None = None
    refusal: str = ""
    by_night: bool = False

    @property
    def why(self) -> str:
        """Why this number of topics or states was chosen; empty without held-out data."""
        if self.selection is None:
            return ""
        return "; ".join(one for one in (self.selection.why, self.selection.why_separable) if one)


_COMPARED: TypeAdapter[Compared] = TypeAdapter(Compared)


def ask_selection(inbox: Inbox, version: int) -> None:
    """Leave a note that requests a comparison; raises what `Folder.write` raises."""
    inbox.folder.write(_ASKED, seal({"version": version}))


def selection_is_asked(inbox: Inbox) -> bool:
    """Whether a note requests a comparison."""
    return inbox.folder.exists(_ASKED)


def found_selection(inbox: Inbox) -> Compared | None:
    """Read the result of the last comparison that a user requested; None if there was not one."""
    data = inbox.folder.find(_FOUND)
    where = f"{inbox.folder.url}/{_FOUND}"
    return None if data is None else checked(_COMPARED, unseal(data, where), f"{where} is invalid")


def compare(store: MomentStore, inbox: Inbox, run: Run) -> Compared:
    """Compare numbers of topics or states of a store, and delete the note that requested it.

    If the process is killed before it has stored the result, the note remains, and the comparison
    is made later.
    """
    try:
        compared = Compared(store.version, _selection(store, run))
    except StoreError:
        raise
    except StreamingMomentsError as error:
        compared = Compared(store.version, refusal=str(error))
    inbox.folder.write(_FOUND, seal(json_value(asdict(compared))))
    inbox.folder.delete([_ASKED])
    return compared


def why_not_compared(store: MomentStore) -> str:
    """Return why the store cannot compare numbers of topics or states; empty if it can."""
    try:
        model_selected(store)
    except InvalidInput as error:
        return str(error)
    return ""


def _selection(store: MomentStore, run: Run) -> Selection:
    model = model_selected(store)
    if model is None:
        numbers = numbers_of_topics(store.basis, store.length_histogram().n_documents)
        return select(store, numbers, [_alpha0(store)], run)
    return select_states(store, model, [model.Options(topics=one) for one in _STATES], run)


def _alpha0(store: MomentStore) -> float | Literal["auto"]:
    """Return alpha0 of the latest model, because the next model is likely to have the same."""
    if not store.models:
        return "auto"
    model = store.load_any_model(model_called(store.commit, None))
    return cast("float", getattr(model, "alpha0", "auto"))
