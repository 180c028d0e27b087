"""What a store of any kind is asked from Python: models, of which topics are one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from distributed import Client

from streaming_moments.arguments import checked, require_fitting
from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import Model
from streaming_moments.models.registry import MODELS
from streaming_moments.pipelines.cluster.cluster import connect, connect_by
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.interface.reading import options_of
from streaming_moments.pipelines.jobs.candidates import Selection
from streaming_moments.pipelines.jobs.kinds.select_states import select_states
from streaming_moments.pipelines.jobs.refit import refit_by, require_kind_of
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.storage.operations.labels import succession
from streaming_moments.storage.store.store import MomentStore

M = TypeVar("M", bound=Model)


@checked
class OfAnyKind:
    """Models of a version of a store; its fields are those of `Store`."""

    snapshot: MomentStore
    storage_options: Mapping[str, Any] | None

    def refit_as(
        self,
        model: type[M],
        *,
        client: Client | None = None,
        name: str | None = None,
        memory: int | None = None,
        **options: Any,
    ) -> M:
        """Any model of this version, such as `HiddenMarkovModel`, without its records.

        Parameters
        ----------
        model : type
            A class of `streaming_moments.models.registry.MODELS`, of the kind that is counted.
        client, memory
            As of `update`.
        name : str, optional
            Keeps the model in the store under this name, which no other model has.
        **options : object
            Of `model.Options`: `topics`, its states, and others.

        Raises
        ------
        InvalidInput
            A model of another kind, or an option that it has not, lacks or refuses.
        NotIdentifiable, BoundExceeded, StoreError
            As `refit`.
        """
        require_fitting(OfAnyKind.refit_as, name=name)
        require_kind_of(model, self.snapshot)
        own = options_of(model, options)
        with running(client, memory, self.storage_options) as run:
            fitted = refit_by(self.snapshot, model, own, run)
        if name is not None:
            after = succession(self.snapshot.latest(), fitted)
            self.snapshot.save_model(name, fitted, "refit from Python", after=after)
        return fitted

    def select_as(
        self,
        model: type[Model],
        topics: Sequence[int],
        *,
        client: Client | None = None,
        memory: int | None = None,
        **options: Any,
    ) -> Selection:
        """Compare numbers of states of a model, such as `HiddenMarkovModel`, by what is held out.

        Parameters
        ----------
        model, client, memory, **options
            As of `refit_as`; `topics` are numbers of states.

        Raises
        ------
        InvalidInput
            A model whose numbers of states are not compared, a store without halves or of sketches.
        NotIdentifiable, BoundExceeded
            As `pipelines.select`.
        """
        require_fitting(OfAnyKind.select_as, topics=topics)
        tried = [options_of(model, {**options, "topics": number}) for number in topics]
        with running(client, memory, self.storage_options) as run:
            return select_states(self.snapshot, model, tried, run)

    def model(self, name: str | None = None) -> Model:
        """A model of any kind that is kept, by its name or tag; by default the latest.

        Raises
        ------
        StoreError
            There is none.
        """
        require_fitting(OfAnyKind.model, name=name)
        return self.snapshot.latest().load_any_model(name)

    def page(self, output: str, model: str | None = None, documents: bool = True) -> str:
        """Write the page of a model that is kept, by its name or tag; gives its headline.

        Parameters
        ----------
        output : str
            Path or fsspec URL of an HTML file.
        model : str, optional
            By default the latest.
        documents : bool
            Whether to show a few lines of a document of each topic, from some of the shards.

        Raises
        ------
        StoreError
            There is no such model, or the file cannot be written.
        """
        require_fitting(OfAnyKind.page, output=output, model=model, documents=documents)
        from streaming_moments.pipelines.reports.headline import headline_of
        from streaming_moments.pipelines.reports.store_page import write_page

        latest = self.snapshot.latest()
        page = write_page(latest, output, model, documents, None, self.storage_options)
        return headline_of(page)

    def _require_documents(self, instead: str) -> None:
        """Refuse what is of topics alone."""
        if self.snapshot.kind != CountsFoundation.kind:
            own = [one.__name__ for one in MODELS.values() if one.kind == self.snapshot.kind]
            raise InvalidInput(
                f"the store holds {self.snapshot.kind}, which have no topics; use "
                f"store.{instead}({' or '.join(own)}, ...)"
            )


@contextmanager
def running(
    client: Client | None, memory: int | None, storage_options: Mapping[str, Any] | None
) -> Iterator[Run]:
    """A run where the client is, or on threads of this process; arguments as of `Store`."""
    require_fitting(running, memory=memory)
    cluster = connect(memory=memory) if client is None else connect_by(client, memory)
    with cluster as found:
        yield Run(found, storage_options=storage_options)
