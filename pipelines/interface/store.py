"""Store: statistics of counted documents, with methods that run jobs on these statistics."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast

from distributed import Client

from streaming_moments.arguments import require_fitting
from streaming_moments.decompositions.methods import OwnRotation
from streaming_moments.deprecation import renamed_arguments
from streaming_moments.errors import InvalidInput
from streaming_moments.models.alpha0 import WITHOUT_HALVES
from streaming_moments.models.base import Model
from streaming_moments.models.passes.polishing import PASSES
from streaming_moments.models.refinement import ROUNDS
from streaming_moments.models.registry import models_of
from streaming_moments.models.stored import outcome_of, too_few_line
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.interface.inputs import (
    Given,
    given_as,
    require_all_there,
    require_no_source,
    require_same_cut,
    with_urls,
)
from streaming_moments.pipelines.interface.origin_shares import SharesByOrigin
from streaming_moments.pipelines.interface.reading import (
    options_of,
    read_by,
    require_idle,
)
from streaming_moments.pipelines.interface.records import Fields
from streaming_moments.pipelines.interface.remedies import of_stores, store_door
from streaming_moments.pipelines.interface.running import PACKAGE, running, warn_caller
from streaming_moments.pipelines.interface.shares_view import SharesOverTime
from streaming_moments.pipelines.interface.topics_view import Topics
from streaming_moments.pipelines.jobs.candidates import Selection
from streaming_moments.pipelines.jobs.choose import chosen_options, most_coherent
from streaming_moments.pipelines.jobs.compact import COMPACT_AFTER, compact_when_many
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.outputs.shard_outputs import FOREIGN_BELOW, Written
from streaming_moments.pipelines.jobs.outputs.transform import TransformResult, transform
from streaming_moments.pipelines.jobs.polish import polish_stored
from streaming_moments.pipelines.jobs.refit import refit_by, require_kind_of, scored_refit
from streaming_moments.pipelines.jobs.rename import rename
from streaming_moments.pipelines.jobs.select import select
from streaming_moments.pipelines.jobs.select_states import select_states
from streaming_moments.pipelines.jobs.sites.merge import merge
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.model_options import finds_number
from streaming_moments.pipelines.reports.kinds.registry import record_noun, warnings_on
from streaming_moments.pipelines.reports.outside_words import share_outside, slow_tokeniser
from streaming_moments.printing.html_table import html_table
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.remedies import remedy
from streaming_moments.progress import reporter
from streaming_moments.storage.dates import Period
from streaming_moments.storage.kinds.registry import columns_of
from streaming_moments.storage.merging.model_copies import pull_model
from streaming_moments.storage.merging.origin_shares import only_of
from streaming_moments.storage.merging.pulling import drop_origin
from streaming_moments.storage.merging.shared_foundation import SharedFoundation
from streaming_moments.storage.operations.labels import label, succession
from streaming_moments.storage.operations.lineages import store_for
from streaming_moments.storage.operations.staleness import staleness
from streaming_moments.storage.operations.windows import dated_segments
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.shards import PARTITIONS
from streaming_moments.storage.store.store import MomentStore

M = TypeVar("M", bound=Model)
# The warning names the line of the caller at stack level 3, because `store_door` wraps the methods.
_TOPICS = renamed_arguments("0.3.0", "0.4.0", level=3, topics="n_topics")
Method = Literal["joint", "feature", "power", "svd", "eigen", "als"]


@store_door
@dataclass(frozen=True, repr=False)
class Store:
    """A store at a version. Make one with `create_store` or `open_store`.

    Methods that write extend the latest version, and return the store at the new version.

    Documents are URLs of shards (a text or a list, with patterns) or, with `source`, a collection.
    A collection is an iterable of texts, (id, text) pairs or mappings, or a function that returns
    one; frames and series of pandas; tables, record batches and readers of Arrow; a `dask.bag`, a
    `dask.dataframe`, or a list of delayed objects or futures. A collection is counted by partition.
    Each partition counts once. The store recognises a partition by the name of the source, the
    number of the partition, and the hash of the content. After an interruption, the same call
    continues. A Dask collection stays on its workers, and may be computed twice if it is not
    persisted.

    Parameters
    ----------
    snapshot : MomentStore
        Store at a version.
    storage_options : mapping, optional
        Options of fsspec for the store and the shards; never stored.
    """

    snapshot: MomentStore
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """URL of the store."""
        return self.snapshot.url

    @property
    def version(self) -> int:
        """Number of the version."""
        return self.snapshot.version

    @property
    def documents(self) -> int:
        """Number of counted documents or records; of passages if documents are split."""
        return int(self.snapshot.totals().n_documents)

    @property
    def outside_share(self) -> float | None:
        """Share of the tokens of counted documents outside the vocabulary; None without tokens."""
        return share_outside(self.snapshot)

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages whose stop words are not counted; InvalidInput for a store of another kind."""
        _ = self.snapshot.counts
        policy = self.snapshot.policy
        return () if policy is None else policy.languages

    @property
    def advice(self) -> tuple[str, ...]:
        """Sentences on what would improve models: more documents, or a lower `outside_share`.

        Empty if the effective number of documents is at least 1,000 and `outside_share` is below
        5%.
        """
        return warnings_on(self.snapshot, self.outside_share, of_stores)

    def update(
        self,
        documents: Any,
        *,
        source: str | None = None,
        by: Period | None = None,
        client: Client | None = None,
        id_column: str | None = None,
        skip_bad_shards: bool = False,
        unique: bool = False,
        include_forgotten: bool = False,
        include_moved: bool = False,
        memory: int | None = None,
        verbose: int | bool = 0,
        compact_after: int = COMPACT_AFTER,
    ) -> Store:
        """Count documents that are not counted yet, as `pipelines.update` does.

        Forgotten documents are skipped with a warning, by name and by content.

        Parameters
        ----------
        documents, source
            As described for the class. An iterable above 128 MiB needs several commits.
        by : {"day", "week", "month"}, optional
            Cut an iterable with dates into partitions of one such period each, so that shares over
            time and ranges of days can use these periods. A later call with more periods counts
            only the new periods.
        client : distributed.Client, optional
            Where to count; by default threads of this process.
        id_column : str, optional
            Column or key of the ids, which must not repeat within a call.
        skip_bad_shards, unique, include_forgotten, include_moved : bool
            As in `pipelines.update`.
        memory : int, optional
            Budget of a worker process in bytes.
        verbose : int
            1 prints a line for each step, with its seconds; 0 prints none.
        compact_after : int
            Merge segments once this many have about the same size, so that a refit reads fewer
            files; 0: never.

        Raises
        ------
        InvalidInput
            `compact_after` is negative, documents have another type or no source, partitions or
            shards were counted with other content, or an id occurs twice. If counted partitions are
            now missing, the error is raised after all given partitions are counted.
        ShardError
            A document is not a text, or a shard is unreadable; the message names the place.
        BoundExceeded, StoreError, WorkersLost, SchedulerLost
            As in `pipelines.update`.
        """
        require_fitting(Store.update, by=by)
        if compact_after < 0:
            raise InvalidInput(f"compact_after is {compact_after}; give at least 0")
        at, there = dataclasses.replace(self, snapshot=self.snapshot.latest()), set[str]()
        with self._running(client, memory, verbose) as run:
            for given in at._given(documents, source, id_column, run, skip_bad_shards, True, by):
                there.update(part.shard.url for part in given.parts)
                shards = given.uncounted(at.snapshot.ledger())
                if shards:
                    done = update(
                        at.snapshot,
                        shards,
                        dataclasses.replace(given.on(run), tell=warn_caller),
                        skip_bad_shards,
                        unique=unique,
                        include_forgotten=include_forgotten,
                        include_moved=include_moved,
                    )
                    at = dataclasses.replace(at, snapshot=done.store)
                    share = done.tokeniser_share
                    if slow := slow_tokeniser(at.snapshot, share, "documents"):
                        run.tell(str(slow))
            merged = compact_when_many(at.snapshot, compact_after, run)
            at = dataclasses.replace(at, snapshot=merged)
            run.tell(f"version {at.version} holds {at._held}")
        if source is not None:
            require_all_there(source, there, at.snapshot.ledger())
        return at

    def forget(
        self,
        documents: Any = None,
        *,
        origin: str | None = None,
        source: str | None = None,
        by: Period | None = None,
        allow_again: bool = False,
        client: Client | None = None,
        memory: int | None = None,
        verbose: int | bool = 0,
    ) -> Store:
        """Subtract counted documents in one commit; give the documents as they were counted.

        Later updates and nightly jobs skip these documents, by name and by content.

        Parameters
        ----------
        documents, source, by, client, memory, verbose
            As in `update`; all partitions of an iterable are in memory at once.
        origin : str, optional
            Subtract all that `merge` copied from this origin, instead of documents.
        allow_again : bool
            Let updates count the documents again; also accepts documents that are forgotten
            already.

        Raises
        ------
        InvalidInput
            Documents are not counted, or were counted with other content; nothing is forgotten.
        ShardError, BoundExceeded, StoreError
            As in `pipelines.forget`.
        """
        require_fitting(Store.forget, by=by)
        at = dataclasses.replace(self, snapshot=self.snapshot.latest())
        if (origin is None) == (documents is None):
            raise InvalidInput("give either the documents to forget, or the name of an origin")
        if origin is not None:
            return dataclasses.replace(self, snapshot=drop_origin(at.snapshot, origin))
        require_no_source(with_urls(documents), source, at.snapshot.ledger())
        with self._running(client, memory, verbose) as run:
            given = Given.joined(at._given(documents, source, None, run, apart=True, by=by))
            left = forget(at.snapshot, given.shards, given.on(run), allow_again=allow_again)
            return dataclasses.replace(at, snapshot=left)

    def rename(
        self,
        old: str,
        new: str,
        *,
        copies: bool = False,
        client: Client | None = None,
        memory: int | None = None,
        verbose: int | bool = 0,
    ) -> Store:
        """Record that counted shards have moved, so that updates do not count them again.

        Reads no shard, and changes no statistics.

        Parameters
        ----------
        old, new : str
            Path or URL of a file, or of a folder, before and after the move.
        copies : bool
            Also rename shards whose files are still at the old place.
        client, memory, verbose
            As in `update`.

        Raises
        ------
        InvalidInput, BoundExceeded, StoreError
            As in `pipelines.rename`.
        """
        at = dataclasses.replace(self, snapshot=self.snapshot.latest())
        with self._running(client, memory, verbose) as run:
            renamed = rename(at.snapshot, old, new, run, copies=copies)
            return dataclasses.replace(at, snapshot=renamed)

    def merge(
        self,
        *others: str | Store,
        name: str | None = None,
        unique: bool = False,
        least_documents: int = 0,
        include_forgotten: bool = False,
        compact_after: int = COMPACT_AFTER,
        client: Client | None = None,
        memory: int | None = None,
        verbose: int | bool = 0,
    ) -> Store:
        """Add the statistics of other stores with the same foundation, without their documents.

        The sum equals, bit for bit, that of a single store that counted all the documents. A later
        call adds only what has changed in the other stores since.

        Parameters
        ----------
        others : str or Store
            Stores, or their URLs, made by `create_store(like=...)`; they do not change.
        name : str, optional
            Name of the origin, if one store is merged; by default the earlier name
            of the merged store, or a name from its URL.
        unique : bool
            Leave out a segment of another store if this store counts the contents of all shards of
            the segment already.
        least_documents : int
            Refuse a new store, or a new segment, with fewer documents than this.
        include_forgotten : bool
            Also count shards and origins that were forgotten in this store or purged from it.
        compact_after, client, memory, verbose
            As in `update`.

        Raises
        ------
        ForeignStatistics
            A store has another foundation. The error says what differs.
        InvalidInput
            One of `others` is this store or contains it, or a shard would count twice.
        StoreError
            A store cannot be read or written. Stores that come earlier in `others` are merged.

        Examples
        --------
        >>> from streaming_moments import create_store
        >>> from streaming_moments.pipelines import PilotOptions
        >>> texts = ["the sea and a ship in the port"] * 30 + ["a law of the tax on trade"] * 30
        >>> few = PilotOptions(min_documents=2)
        >>> hub = create_store("memory://hub", texts, source="texts", max_topics=2, pilot=few)
        >>> rome = create_store("memory://rome", like=hub).update(texts, source="texts")
        >>> hub.merge(rome).documents
        60
        """
        told = {"unique": unique, "least_documents": least_documents, "name": name}
        told |= {"include_forgotten": include_forgotten}
        require_fitting(Store.merge, compact_after=compact_after, **told)
        urls = [one.url if isinstance(one, Store) else one for one in others]
        with self._running(client, memory, verbose) as run:
            done = merge(
                self.snapshot.latest(),
                urls,
                run,
                name,
                unique,
                least_documents,
                compact_after=compact_after,
                include_forgotten=include_forgotten,
            )
        return dataclasses.replace(self, snapshot=done.store)

    def pull_model(
        self, hub: str | Store, *, model: str | None = None, name: str | None = None
    ) -> Store:
        """Copy a model that another store with the same foundation has fitted.

        `transform`, `topics`, `page` and a service then use it like a model of this store.

        Parameters
        ----------
        hub : str or Store
            The store that fitted the model, or its URL; it does not change.
        model : str, optional
            Name or tag in the hub; by default the tag "published", or the latest model if there is
            no such tag. If it is a tag, the tag of this name in this store moves to the copy.
        name : str, optional
            Name of the copy; by default the name in the hub.

        Raises
        ------
        ForeignStatistics
            The store has another foundation. The error says what differs.
        InvalidInput
            Another model of this store has the name, or the model has other words.
        StoreError
            There is no such model, or a store cannot be read or written.

        Examples
        --------
        >>> from streaming_moments import create_store
        >>> from streaming_moments.pipelines import PilotOptions
        >>> texts = ["the sea and a ship in the port"] * 30 + ["a law of the tax on trade"] * 30
        >>> few = PilotOptions(min_documents=2)
        >>> hub = create_store("memory://whole", texts, source="texts", max_topics=2, pilot=few)
        >>> hub = hub.update(texts, source="texts")
        >>> _ = hub.refit(2, 0.1, name="first")
        >>> oslo = create_store("memory://oslo", like=hub).pull_model(hub)
        >>> oslo.topics("first").model.n_topics
        2
        """
        require_fitting(Store.pull_model, model=model, name=name)
        if isinstance(hub, Store):
            other = hub.snapshot
        else:
            other = MomentStore.open(hub, storage_options=self.storage_options, whole=False)
        done = pull_model(self.snapshot, other, model, name)
        return dataclasses.replace(self, snapshot=done.store)

    @_TOPICS
    def refit(
        self,
        n_topics: int | Literal["auto", "predict"] = "auto",
        alpha0: float | Literal["auto"] = "auto",
        *,
        client: Client | None = None,
        method: Method | OwnRotation = "joint",
        seed: int = 0,
        refine: int | Literal["auto"] = ROUNDS,
        alpha: Literal["given", "auto"] = "given",
        name: str | None = None,
        memory: int | None = None,
        verbose: int | bool = 0,
    ) -> Topics:
        """Fit topics to this version, without its documents.

        Parameters
        ----------
        n_topics : int, "auto" or "predict"
            Number of topics. "auto" chooses the smallest number after which another topic improves
            the held-out score little. "predict" chooses the smallest number that predicts best. If
            the store has no halves (`CountingOptions(halves=False)`), "auto" chooses the number
            with the most coherent topics, as in `select`.
        alpha0 : float or "auto"
            Sum of the Dirichlet parameters; 0 means one topic for each document. "auto" chooses the
            value with the best held-out log-likelihood, or 0.1 without halves.
        method, seed
            As in `fit_by`. If `method` is a function of your own, the stored model has the name of
            the function.
        refine : int or "auto"
            Rounds of refinement; "auto" stops when the held-out log-likelihood no longer rises.
        alpha : {"given", "auto"}
            Sum of the Dirichlet parameters with which the model reads documents: "given" takes
            `alpha0`, "auto" the sum with the best held-out log-likelihood.
        client, memory, verbose
            As in `update`.
        name : str, optional
            Save the model in the store under this new name. Without a name, the model is not saved,
            although the command `refit` always saves it.

        Raises
        ------
        NotIdentifiable, BoundExceeded
            As in `pipelines.refit`. NotIdentifiable also for "auto" if the store has neither halves
            nor co-document counts.
        InvalidInput, StoreError
            `n_topics` is not a number, `refine` is "auto" without halves, or the name exists, as in
            `MomentStore.save_model`.
        """
        told = {"method": method, "seed": seed, "refine": refine, "alpha": alpha, "name": name}
        require_fitting(Store.refit, n_topics=n_topics, alpha0=alpha0, **told)
        self._require_documents("refit_as")
        # The cast is for the type checker: options have the name of a method, but a function works.
        called = cast("str", method)
        with self._running(client, memory, verbose) as run:
            if n_topics == "auto" and refine != "auto" and not self.snapshot.halves:
                known = WITHOUT_HALVES if alpha0 == "auto" else alpha0
                n_topics = most_coherent(self.snapshot, known, run, called, seed, refine)
            asked = {"topics": n_topics, "refine": refine}
            auto = {option: value for option, value in asked.items() if isinstance(value, str)}
            options = TopicOptions(
                topics=1 if isinstance(n_topics, str) else n_topics,
                alpha0=alpha0,
                method=called,
                seed=seed,
                refine=ROUNDS if refine == "auto" else refine,
                alpha=alpha,
            )
            options = chosen_options(self.snapshot, options, auto, run)
            model = scored_refit(self.snapshot, TopicModel, options, run)
            run.tell(outcome_of(model))
        if warning := too_few_line(model) or model.rough_sentence:
            warn_caller(warning)
        labels = self._kept(name, model)
        return Topics(model, self.snapshot.vocabulary, self.snapshot.policy, labels)

    @_TOPICS
    def select(
        self,
        n_topics: Sequence[int],
        alpha0: Sequence[float | Literal["auto"]] = ("auto",),
        *,
        client: Client | None = None,
        method: Method = "joint",
        seed: int = 0,
        refine: int | Literal["auto"] = ROUNDS,
        memory: int | None = None,
        verbose: int | bool = 0,
    ) -> Selection:
        """Compare numbers of topics; arguments and errors as in `pipelines.select`."""
        told = {"method": method, "seed": seed, "refine": refine}
        require_fitting(Store.select, n_topics=n_topics, alpha0=alpha0, **told)
        self._require_documents("select_as")
        with self._running(client, memory, verbose) as run:
            return select(
                self.snapshot, n_topics, alpha0, run, method, seed, refine, spell=of_stores
            )

    def polish(
        self,
        documents: Any = None,
        *,
        source: str | None = None,
        model: str | None = None,
        passes: int | Literal["auto"] = PASSES,
        alpha: bool = False,
        name: str | None = None,
        skip_bad_shards: bool = False,
        client: Client | None = None,
        memory: int | None = None,
        verbose: int | bool = 0,
    ) -> Topics | Model:
        """Improve a stored model by passes over documents, which need not be counted.

        Parameters
        ----------
        documents, source
            As in `forget`; by default the counted shards of the days that the model covers. A
            collection must be given, because it is in no file.
        model : str, optional
            Name or tag of the model to start from; by default the latest.
        passes, alpha, skip_bad_shards
            As in `pipelines.polish`.
        name : str, optional
            Save the polished model in the store under this new name.
        client, memory, verbose
            As in `update`.

        Returns
        -------
        Topics or Model
            `Topics` for a store of documents; the model itself for other kinds.

        Raises
        ------
        StoreError
            There is no such model, or the new name exists.
        InvalidInput, ShardError, BoundExceeded
            As in `pipelines.polish`.
        """
        told: dict[str, object] = {"source": source, "model": model, "passes": passes}
        require_fitting(Store.polish, alpha=alpha, name=name, **told)
        at = self.snapshot.latest()
        if documents is None and any(one.url.startswith(PARTITIONS) for one in at.ledger()):
            raise InvalidInput(
                "the store counted collections, which are not stored in files; give `polish` the "
                "documents and their source, as you gave them to `update`"
            )
        with self._running(client, memory, verbose) as run:
            on, shards = dataclasses.replace(run, tell=warn_caller), None
            if documents is not None:
                read = dataclasses.replace(self, snapshot=at)
                given = Given.joined(read._given(documents, source, None, run))
                on, shards = given.on(on), given.shards
            done = polish_stored(
                at, model, on, shards, passes, alpha, name, skip_bad_shards=skip_bad_shards
            )
            run.tell(outcome_of(done.model))
        for error in done.result.bad:
            warn_caller(remedy("left out {error}", error=error))
        if not done.model.finds_topics:
            return cast("Model", done.model)
        fitted = store_for(at, done.parent, done.model)
        labels = (done.kept or at).models[name or done.parent].labels
        return Topics(done.model, fitted.vocabulary, fitted.policy, labels)

    @_TOPICS
    def refit_as(
        self,
        model: type[M],
        *,
        client: Client | None = None,
        name: str | None = None,
        memory: int | None = None,
        verbose: int | bool = 0,
        **options: Any,
    ) -> M:
        """Fit a model of any class, such as `HiddenMarkovModel`, to this version.

        No record is read.

        Parameters
        ----------
        model : type
            A class of `streaming_moments.models.registry.MODELS` for the kind of the store.
        client, memory, verbose
            As in `update`.
        name : str, optional
            Save the model in the store under this new name.
        **options : object
            `n_topics`, the number of states, and other fields of `model.Options`. For models whose
            numbers of states can be compared, `n_topics` may be "auto" or "predict", as in the
            command `refit`.

        Raises
        ------
        InvalidInput
            The model is of another kind, or an option is unknown, missing or invalid.
        NotIdentifiable, BoundExceeded, StoreError
            As in `refit`.
        """
        require_fitting(Store.refit_as, name=name)
        require_kind_of(model, self.snapshot)
        how = options.get("n_topics")
        auto = {"topics": how} if isinstance(how, str) else {}
        if auto and (how not in ("auto", "predict") or not finds_number(model, "topics")):
            raise InvalidInput(
                f"n_topics is {how!r}, which model {model.name} does not support; give a number"
            )
        own = options_of(model, {**options, "n_topics": 1} if auto else options)
        with self._running(client, memory, verbose) as run:
            if auto:
                own = chosen_options(self.snapshot, own, auto, run, model)
            fitted = refit_by(self.snapshot, model, own, run)
            run.tell(outcome_of(fitted))
        self._kept(name, fitted)
        return fitted

    @_TOPICS
    def select_as(
        self,
        model: type[Model],
        n_topics: Sequence[int],
        *,
        client: Client | None = None,
        memory: int | None = None,
        verbose: int | bool = 0,
        **options: Any,
    ) -> Selection:
        """Compare numbers of states of a model, such as `HiddenMarkovModel`, by held-out data.

        Parameters
        ----------
        model, client, memory, verbose, **options
            As in `refit_as`; `n_topics` lists the numbers of states to compare.

        Raises
        ------
        InvalidInput
            Numbers of states of the model cannot be compared, or the store has no halves
            (`CountingOptions(halves=False)`), or has only sketches.
        NotIdentifiable, BoundExceeded
            As in `pipelines.select`.
        """
        require_fitting(Store.select_as, n_topics=n_topics)
        tried = [options_of(model, {**options, "n_topics": number}) for number in n_topics]
        with self._running(client, memory, verbose) as run:
            return select_states(self.snapshot, model, tried, run, of_stores)

    def transform(
        self,
        documents: Any,
        output: str,
        *,
        source: str | None = None,
        model: str | None = None,
        id_column: str | None = None,
        passages: bool = False,
        top_documents: int = 0,
        foreign_below: float = FOREIGN_BELOW,
        replace: bool = False,
        client: Client | None = None,
        memory: int | None = None,
        verbose: int | bool = 0,
    ) -> TransformResult | Written:
        """Write topic proportions as Parquet: a file for each shard, with a row for each document.

        For records in three views, write their states; for sequences, the states of all symbols;
        for tables, completed rows. `id_column` and the options after it apply to documents only.

        To read a list of texts at once without files, use `topics().transform`.

        Parameters
        ----------
        documents, source, client, memory, verbose
            As in `forget`; the documents need not be counted.
        output : str
            fsspec URL of a folder.
        model : str, optional
            Name or tag of a stored model; by default the latest.
        id_column : str, optional
            Column or key of the ids in tables, mappings and shards. Without it, the id is the first
            item of a pair, or the index in pandas.
        passages, top_documents, foreign_below, replace
            As in `pipelines.transform`.

        Raises
        ------
        StoreError
            There is no such model, or the output cannot be written.
        InvalidInput, ShardError, BoundExceeded
            As in `pipelines.transform`.
        """
        told: dict[str, object] = {"output": output, "source": source, "model": model}
        told |= {"id_column": id_column, "passages": passages, "top_documents": top_documents}
        told |= {"replace": replace}
        require_fitting(Store.transform, foreign_below=foreign_below, **told)
        at = dataclasses.replace(self, snapshot=self.snapshot.latest())
        loaded, name = at.snapshot.load_any_model(model), model_called(at.snapshot.commit, model)
        if not isinstance(loaded, TopicModel):
            idle = {"id_column": id_column, "passages": passages, "top_documents": top_documents}
            require_idle(loaded, {**idle, "foreign_below": foreign_below != FOREIGN_BELOW})
            with self._running(client, memory, verbose) as run:
                given = Given.joined(at._given(documents, source, None, run))
                on = dataclasses.replace(given.on(run), tell=warn_caller)
                return read_by(at.snapshot, loaded, given.shards, output, on, name, replace)
        fitted = store_for(at.snapshot, name, loaded)
        with self._running(client, memory, verbose) as run:
            given = Given.joined(at._given(documents, source, id_column, run, named=True))
            done = transform(
                fitted,
                loaded,
                given.shards,
                output,
                dataclasses.replace(given.on(run), tell=warn_caller),
                id_column=at._fields(id_column).id_key if given.parts else id_column,
                passages=passages,
                top_documents=top_documents,
                foreign_below=foreign_below,
                name=name,
                labels=at.snapshot.models[name].labels,
                replace=replace,
            )
        return given.labelled(done)

    def topics(self, name: str | None = None) -> Topics:
        """Return a stored model with its words, by name or tag; by default the latest.

        Raises
        ------
        StoreError
            There is no such model.
        """
        require_fitting(Store.topics, name=name)
        latest = self.snapshot.latest()
        model, chosen = latest.load_model(name), model_called(latest.commit, name)
        fitted = store_for(latest, chosen, model)
        stale, labels = staleness(latest, chosen), latest.models[chosen].labels
        return Topics(model, fitted.vocabulary, fitted.policy, labels, stale)

    def shares_over_time(
        self, by: Period = "month", name: str | None = None, origin: str | None = None
    ) -> SharesOverTime:
        """Return shares of the topics of a stored model over time, with error bars.

        They are computed from the counts of the store, without its documents.

        Parameters
        ----------
        by : {"day", "week", "month"}
            Length of the periods; weeks begin on Monday.
        name : str, optional
            Name or tag of the model; by default the latest.
        origin : str, optional
            Use only documents from this origin of a hub. "" stands for the documents that the hub
            counted itself.

        Raises
        ------
        InvalidInput
            The store has no dates, or counted several of these periods together; or it has no such
            origin.
        StoreError
            There is no such model, or a file is missing or damaged.
        """
        require_fitting(Store.shares_over_time, by=by, name=name, origin=origin)
        latest = self.snapshot.latest()
        # report missing dates before a missing model, because without dates a model does not help
        dated_segments(latest if origin is None else only_of(latest, origin))
        return SharesOverTime.of(latest, self.topics(name), name, by, origin)

    def shares_by_origin(self, name: str | None = None) -> SharesByOrigin:
        """Return shares of the topics of a stored model in each origin of a hub, with error bars.

        They are computed from the counts of the store, without its documents.

        Parameters
        ----------
        name : str, optional
            Name or tag of the model; by default the latest.

        Raises
        ------
        InvalidInput
            The store has no origins.
        StoreError
            There is no such model, or a file is missing or damaged.
        """
        require_fitting(Store.shares_by_origin, name=name)
        return SharesByOrigin.of(self.snapshot.latest(), self.topics(name), name)

    def model(self, name: str | None = None) -> Model:
        """Return a stored model of any kind, by name or tag; by default the latest.

        Raises
        ------
        StoreError
            There is no such model.
        """
        require_fitting(Store.model, name=name)
        return self.snapshot.latest().load_any_model(name)

    def page(self, output: str, model: str | None = None, documents: bool = True) -> str:
        """Write the page of a stored model, by name or tag, and return its headline.

        Parameters
        ----------
        output : str
            Path or fsspec URL of an HTML file.
        model : str, optional
            Name or tag; by default the latest.
        documents : bool
            Whether to show a few lines of a document about each topic, from some of the shards.

        Raises
        ------
        StoreError
            There is no such model, or the file cannot be written.
        """
        require_fitting(Store.page, output=output, model=model, documents=documents)
        from streaming_moments.pipelines.reports.headline import headline_of
        from streaming_moments.pipelines.reports.store_page import write_page

        latest = self.snapshot.latest()
        page = write_page(latest, output, model, documents, None, self.storage_options)
        return headline_of(page)

    def label(self, topic: int, text: str, model: str | None = None) -> Store:
        """Name a topic of a stored model; models that are fitted later use the name, too.

        Parameters
        ----------
        topic, text, model
            As in `storage.operations.labels.label`, with the same errors.
        """
        require_fitting(Store.label, topic=topic, text=text, model=model)
        labelled = label(self.snapshot.latest(), topic, text, model)
        labels = labelled.models[model_called(labelled.commit, model)].labels
        same = [one for one, other in labels.items() if text and other == text and one != topic]
        if same:
            warn_caller(f"topic {same[0]} has the label {text!r}, too; give each topic its own")
        return dataclasses.replace(self, snapshot=labelled)

    def foundation(self, output: str) -> None:
        """Write words, basis and rules of this version as a file, for `create_store(like=...)`.

        The file holds no counts, no models and no names of shards.

        Parameters
        ----------
        output : str
            Path or fsspec URL of a JSON file.

        Raises
        ------
        StoreError
            The file cannot be written.
        """
        require_fitting(Store.foundation, output=output)
        SharedFoundation.of(self.snapshot).save(output, self.storage_options)

    def __repr__(self) -> str:
        return f"Store({self.url!r}, version {self.version}, {self._held})"

    def _repr_html_(self) -> str:
        rows = [
            ("version", self.version),
            (f"{record_noun(self.snapshot)}s", f"{self.documents:,}"),
            ("shards and partitions", f"{len(self.snapshot.ledger()):,}"),
            ("words", f"{self.snapshot.foundation.rows:,}"),
            ("models", len(self.snapshot.models)),
        ]
        return html_table(f"store {self.url}", ["what", "how many"], rows)

    @property
    def _held(self) -> str:
        return of_number(self.documents, record_noun(self.snapshot))

    def _running(
        self, client: Client | None, memory: int | None, verbose: int | bool
    ) -> AbstractContextManager[Run]:
        return running(client, memory, self.storage_options, reporter("Store", verbose, PACKAGE))

    def _kept(self, name: str | None, model: Model) -> Mapping[int, str]:
        """Save a model and return its labels; without a name, do not save it and return {}."""
        if name is None:
            return {}
        after = succession(self.snapshot.latest(), model)
        kept = self.snapshot.save_model(name, model, "refit from Python", after=after)
        return kept.models[name].labels

    def _require_documents(self, instead: str) -> None:
        """Raise InvalidInput, which suggests `instead`, if models of this kind have no topics."""
        own = models_of(self.snapshot.kind)
        if not any(one.finds_topics for one in own):
            names = " or ".join(one.__name__ for one in own)
            raise InvalidInput(
                f"the store holds {self.snapshot.kind}, which have no topics; use "
                f"store.{instead}({names}, ...)"
            )

    def _given(
        self,
        documents: Any,
        source: str | None,
        id_column: str | None,
        run: Run,
        keep_going: bool = False,
        apart: bool = False,
        by: Period | None = None,
        named: bool = False,
    ) -> Iterator[Given]:
        fields = self._fields(id_column, named)
        kind, ledger = self.snapshot.form.kind, self.snapshot.ledger()

        def counted(url: str) -> bool:
            return ledger.find(url) is not None

        def uncounted(url: str) -> bool:
            return ledger.find(url) is None

        if apart and isinstance(source, str):
            require_same_cut(source, by, ledger)
        each = uncounted if apart else None
        return given_as(documents, source, fields, run, kind, counted, keep_going, each, by)

    def _fields(self, id_column: str | None, named: bool = False) -> Fields:
        column, columns = self.snapshot.form.text_column, columns_of(self.snapshot)
        return Fields(column, self.snapshot.dates.column, id_column, named, columns)
