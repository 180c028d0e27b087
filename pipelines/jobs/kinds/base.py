"""KindJobs: how stores of a kind are created and rebased."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from shlex import quote
from typing import Any

from streaming_moments.pipelines.cluster.memory import plan_reading
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.counting_options import CountingOptions, PilotOptions
from streaming_moments.pipelines.jobs.create import draw_samples, pilot_limits
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.log.commits import READING
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.creation import require_absent
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True)
class Sampling:
    """Input of a pilot: the arguments of `create_kind`, and bounds of a task.

    At most `in_flight` tasks of a worker read at once.
    """

    shards: Sequence[Shard]
    shape: KindOptions
    counting: CountingOptions
    options: PilotOptions
    run: Run
    limits: ReadLimits
    in_flight: int

    @classmethod
    def of(
        cls,
        shards: Sequence[Shard],
        shape: KindOptions,
        counting: CountingOptions,
        options: PilotOptions,
        run: Run,
    ) -> Sampling:
        """Plan sampling within the memory of the run; raises BoundExceeded if no task fits."""
        plan = plan_reading(run.cluster.threads, run.cluster.memory, run.limits)
        limits = pilot_limits(run.limits, plan, run.cluster.memory)
        return cls(shards, shape, counting, options, run, limits, plan.in_flight)

    def samples(self, read: Callable[..., Any], what: Any) -> list[Any]:
        """Return what `read` samples of each shard, as in `draw_samples`."""
        return draw_samples(read, self.shards, self.counting.form, what, self.options, self.run)


@dataclass(frozen=True)
class Made:
    """A new foundation, how to read shards for it, and a phrase that says what it was made from."""

    foundation: Any
    reading: Mapping[str, Any]
    origin: str


@dataclass(frozen=True)
class Redraw:
    """How a store of a kind gets another foundation, on which its shards are counted again.

    known : returns options of the pilot that stores of early versions of this package do not record
    begun : `begun(store, shards, options, halves, run)` returns the store with a new, empty lineage
    renewed : returns a phrase about the new parts of a foundation
    """

    known: Callable[[MomentStore], Mapping[str, Any]]
    begun: Callable[[MomentStore, Sequence[Shard], PilotOptions, bool | None, Run], MomentStore]
    renewed: Callable[[Any], str]


@dataclass(frozen=True)
class Sight:
    """One way to read the columns of a shard as data of a kind.

    what : description
    options : options of `create` besides `--kind`
    columns : value of `--columns`; None for the default
    changes : fields of `CountingOptions` to change, with their new values
    usual : whether the columns have the default names
    """

    what: str
    options: str = ""
    columns: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict, hash=False)
    usual: bool = False

    @classmethod
    def of_columns(cls, what: str, names: Iterable[str]) -> Sight:
        """Make a way to read columns by names, as `--columns` lists them."""
        columns = ",".join(names)
        return cls(f"{what} {columns}", f"--columns {quote(columns)}", columns)


def _no_sights(columns: Mapping[str, str], text_column: str) -> Sequence[Sight]:
    return ()


@dataclass(frozen=True)
class KindJobs:
    """How stores of a kind are created.

    foundation : class of the foundations of the kind
    takes : options of `create` that this kind accepts, but not all kinds
    create : creates a store; arguments as in `create_kind`
    form : returns, for given options, where records are, with their `columns`; None for documents.
        Raises InvalidInput for impossible columns
    redraw : how a store is rebased; without it `rebase` refuses the kind
    misfit : returns a sentence about options of a pilot that exclude each other; empty if none do
    sights : `sights(columns, text_column)` returns the ways in which a shard can be read as this
        kind. `columns` maps the name of each column to its type: text, word, whole, bit (0 or 1),
        number, or lists of words, ids or numbers
    """

    foundation: Any
    takes: frozenset[str]
    create: Callable[
        [str, Sequence[Shard], KindOptions, CountingOptions, PilotOptions, Run], MomentStore
    ]
    form: Callable[[KindOptions], Any]
    redraw: Redraw | None = None
    misfit: Callable[[PilotOptions], str] = lambda options: ""
    sights: Callable[[Mapping[str, str], str], Sequence[Sight]] = _no_sights


def create_by(
    made: Callable[[Sampling], Made],
    url: str,
    shards: Sequence[Shard],
    shape: KindOptions,
    counting: CountingOptions,
    options: PilotOptions,
    run: Run,
) -> MomentStore:
    """Create a store with the foundation that `made` derives from a pilot.

    The other arguments are as in `create_kind`.
    """
    require_absent(Folder.at(url, run.storage_options))
    drawn = made(Sampling.of(shards, shape, counting, options, run))
    return MomentStore.create_on(
        url,
        drawn.foundation,
        {**counting.form.to_json(), READING: drawn.reading},
        f"create from {drawn.origin}",
        run.storage_options,
        dates=counting.dates,
        pilot={**asdict(options), **asdict(shape)},
    )
