"""Configuration of the nightly run: a TOML file, validated key by key before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, ClassVar, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass

from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.pipelines.cluster.run import COMMIT_EVERY
from streaming_moments.pipelines.cluster.worker_loss import WORKER_TIMEOUT
from streaming_moments.pipelines.counting_options import CountingOptions, PilotOptions
from streaming_moments.pipelines.jobs.compact import COMPACT_AFTER
from streaming_moments.pipelines.jobs.grow import WORDS
from streaming_moments.pipelines.jobs.kinds.create_kinds import require_options_of
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.pipelines.jobs.kinds.registry import KIND_JOBS
from streaming_moments.pipelines.nightly.gates import GatesSection
from streaming_moments.pipelines.nightly.keys import (
    STRICT,
    Expiry,
    Place,
    Positive,
    ShardUrl,
    Size,
    Time,
    collected,
    listed,
    require_one_of,
    tag_name,
)
from streaming_moments.pipelines.nightly.refit_config import RefitSection
from streaming_moments.pipelines.quantities import Count, Number, Share
from streaming_moments.pipelines.toml_files import OtherFile, from_toml, read_toml
from streaming_moments.quality.drift import DriftBounds
from streaming_moments.statistics.registry import KINDS
from streaming_moments.statistics.views.sketches import WHOLE
from streaming_moments.storage.dates import NO_PATTERN, Bucket
from streaming_moments.storage.formats import ReadLimits


@dataclass(frozen=True, config=STRICT)
class CreateSection(KindOptions, CountingOptions, PilotOptions):
    """Options for creating the store in the first nightly run; its keys are options of `create`.

    given : keys that the file contains, also those with default values
    """

    given: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="wrap")
    @classmethod
    def _with_keys(cls, value: Any, make: Callable[[Any], CreateSection]) -> CreateSection:
        made = make(value)
        if isinstance(value, Mapping):
            object.__setattr__(made, "given", frozenset(value))
        return made

    @field_validator("*")
    @classmethod
    def _usable(cls, value: Any, info: ValidationInfo) -> Any:
        about = cls.__dataclass_fields__[str(info.field_name)].metadata
        if about["check"] is not None and value is not None:
            about["check"](value)
        if (names := about.get("choices")) is not None:
            require_one_of(value, names)
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> CreateSection:
        _ = self.form, self.dates, self.counting.policy
        require_options_of(self.shape, self.counting, self.pilot)
        if misfit := KIND_JOBS[self.kind].misfit(self.pilot):
            raise ValueError(misfit)
        return self

    @property
    def sketches(self) -> bool:
        """Whether the section requests sketches where the default would store whole tables."""
        return self.sketch_columns is not None and self.sketch_columns <= WHOLE

    @property
    def shape(self) -> KindOptions:
        """Options that say which kind of records the shards hold."""
        return cast("KindOptions", self._of(KindOptions))

    @property
    def counting(self) -> CountingOptions:
        """Options that define a document."""
        return cast("CountingOptions", self._of(CountingOptions))

    @property
    def pilot(self) -> PilotOptions:
        """Options by which the vocabulary and the basis are chosen."""
        return cast("PilotOptions", self._of(PilotOptions))

    def _of(self, options: Any) -> Any:
        return options(**{part.name: getattr(self, part.name) for part in fields(options)})


@dataclass(frozen=True, config=STRICT)
class UpdateSection:
    """Options for counting new shards."""

    skip_bad_shards: bool = True
    unique: bool = False
    include_moved: bool = False
    compact_after: Number = COMPACT_AFTER
    compact_by: Bucket = "day"
    max_document_bytes: Size = 8 << 20
    commit_every: Time = timedelta(seconds=COMMIT_EVERY)

    @property
    def limits(self) -> ReadLimits:
        """Bounds on documents."""
        return ReadLimits(self.max_document_bytes)


@dataclass(frozen=True, config=STRICT)
class MergeSection:
    """Which stores of other sites a nightly run merges before its update; how old they may be."""

    # the key in TOML is `from`, which is a reserved word in Python
    from_: Annotated[tuple[Place, ...], Field(alias="from", min_length=1), BeforeValidator(listed)]
    max_age: Positive | None = None
    unique: bool = False
    least_documents: Number = 0


@dataclass(frozen=True, config=STRICT)
class RebaseSection:
    """Bounds of drift above which a nightly run rebases; a missing bound does not apply."""

    min_captured: Share | None = None
    max_outside_share: Share | None = None
    max_pair_distance: Share | None = None
    allow_missing: bool = False
    not_again_for: Time = timedelta(days=7)

    @property
    def bounds(self) -> DriftBounds:
        """The bounds of drift."""
        return DriftBounds(self.min_captured, self.max_outside_share, None, self.max_pair_distance)


@dataclass(frozen=True, config=STRICT)
class GrowthSection:
    """When a nightly run adds words to the vocabulary, and how many.

    The share of new tokens outside the vocabulary must exceed `outside_above`. It must also exceed
    the same share among earlier documents, if there are any, by `outside_rise`. Otherwise a
    vocabulary that always lacked these words would grow every night. A vocabulary of `most_words`
    gets no more words.
    """

    enabled: bool = True
    outside_above: Share = 0.05
    outside_rise: Share = 0.0
    words: Count = WORDS
    most_words: Count | None = None


# Rule for a configuration without [growth]. It is strict, because then no one watches the size of
# the vocabulary.
_GROWTH = GrowthSection(outside_rise=0.02)
# Without [growth], the vocabulary grows at most to this multiple of the requested size.
MOST_TIMES = 2


@dataclass(frozen=True, config=STRICT)
class ClusterSection:
    """Options of the cluster, the same as for every command."""

    scheduler: ShardUrl | None = None
    workers: Number = 0
    memory: Size | None = None
    worker_timeout: Time = timedelta(seconds=WORKER_TIMEOUT)
    dashboard: bool = False
    performance_report: str | None = None


@dataclass(frozen=True, config=STRICT)
class MetricsSection:
    """Local file of metrics that each run writes for the node exporter of Prometheus."""

    textfile: Annotated[str, AfterValidator(collected)]


@dataclass(frozen=True, config=STRICT)
class NightlyConfig:
    """All options of a nightly run.

    Parameters
    ----------
    store : str
        URL of the store.
    shards : tuple of str
        Patterns of shards; a pattern without matches is no error. Empty for a hub that only merges.
    output : str
        URL of the folder for reports.
    refit : RefitSection
        How to fit the model: topics, alpha0 and method.
    create : CreateSection, optional
        Options for creating the store; without them a missing store is an error.
    merge : MergeSection, optional
        Stores of other sites to add.
    update, rebase, gates, cluster : sections
        Options of the other steps; without [rebase] no nightly run rebases.
    growth : GrowthSection, optional
        When words are added. Without [growth], words are added if the share of tokens outside the
        vocabulary is above 5% and has risen by 2 points, up to twice the requested vocabulary
        size. They are never added with [merge], or to a store that was created like another,
        because the statistics of stores with different words cannot be added.
    metrics : MetricsSection, optional
        File for the metrics; without [metrics] no file is written.
    tag : str
        Tag of the published model.
    lock_expiry : timedelta
        A run without a sign of life for this time counts as dead, and the next run takes over.
    wait : timedelta
        How long to wait for another run, such as a counting cycle of a service.
    sample_documents : bool
        Whether report and page show a few lines of a document of each topic.
    storage_options : mapping
        fsspec options of cloud URLs; never stored.
    """

    store: Place
    shards: Annotated[tuple[ShardUrl, ...], BeforeValidator(listed)]
    output: Place
    refit: RefitSection
    create: CreateSection | None = None
    merge: MergeSection | None = None
    update: UpdateSection = UpdateSection()
    rebase: RebaseSection | None = None
    gates: GatesSection = GatesSection()
    cluster: ClusterSection = ClusterSection()
    growth: GrowthSection | None = None
    metrics: MetricsSection | None = None
    tag: Annotated[str, AfterValidator(tag_name)] = "published"
    lock_expiry: Expiry = timedelta(hours=6)
    wait: Time = timedelta(0)
    sample_documents: bool = True
    storage_options: dict[str, Any] = Field(default_factory=dict, repr=False)

    @property
    def growing(self) -> GrowthSection | None:
        """The rule for adding words; None if nightly runs never add words."""
        family = self.refit.family
        section = self.growth or (_GROWTH if self.merge is None else None)
        adds = KINDS[family.kind].adds_words and family is not LatentTree
        return section if section is not None and section.enabled and adds else None

    @model_validator(mode="after")
    def _fits_together(self) -> NightlyConfig:
        made, refit = self.create, self.refit
        if not self.shards and self.merge is None:
            raise ValueError(
                "shards: give at least 1 pattern, or give the stores to merge as [merge] from"
            )
        if self.merge is not None and self.rebase is not None:
            raise ValueError(
                "[rebase] counts all documents again, but with [merge] they are at other sites; "
                "leave [rebase] out"
            )
        if self.merge is not None and refit.polish:
            raise ValueError(
                "[refit] polish reads all documents again, but with [merge] they are at other "
                "sites; leave polish out"
            )
        if self.merge is not None and made is not None:
            raise ValueError(
                "[create] chooses words that the sites of [merge] do not count; leave [create] "
                "out, and create the store by `streaming-moments create STORE --like SITE`"
            )
        self.gates.require_known(refit)
        kind = refit.family.kind
        for name, section in (("rebase", self.rebase), ("growth", self.growth)):
            if section is not None and not KINDS[kind].adds_words:
                raise ValueError(f"[{name}] applies to documents, not to kind {kind}; leave it out")
        if self.growth is not None and refit.family is LatentTree:
            raise ValueError(
                "[growth] applies to words, not to categories; leave it out, or give [rebase] "
                "instead"
            )
        if made is None:
            return self
        if made.kind != kind:
            raise ValueError(
                f"[refit] model {refit.model!r} needs statistics of kind {kind}, and [create] "
                f"kind is {made.kind!r}"
            )
        several = len(refit.topics) * len(refit.alpha0) > 1
        if several and not refit.topical and not made.halves:
            raise ValueError(
                "[refit] compares several topics or alpha0, which needs halves of the records; "
                "give one of each, or remove halves = false from [create]"
            )
        # models of rows of numbers need no halves: the spectrum decides their number of components
        if refit.auto and refit.family.holds_out not in ("", "rows") and not made.halves:
            key, word = next(iter(refit.auto.items()))
            raise ValueError(
                f"[refit] {key} is {word}, which needs halves of the records; give a number, or "
                "remove halves = false from [create]"
            )
        held_out = ", ".join(self.gates.held_out)
        if held_out and not made.halves:
            raise ValueError(
                f"[gates] {held_out}: needs held-out data; leave it out, or remove halves = false "
                "from [create]"
            )
        whole = refit.family.holds_out in ("triples", "edges")
        if (held_out or several) and whole and made.sketches:
            what = f"[gates] {held_out}" if held_out else "[refit] topics and alpha0"
            raise ValueError(
                f"{what}: sketches have no held-out {refit.family.holds_out}; leave out "
                f"[create] sketch_columns, because up to {WHOLE} words or symbols are stored "
                "whole"
            )
        if not made.codocuments and several:
            raise ValueError(
                "[refit] compares several topics or alpha0, which needs co-document counts; "
                "give one of each, or remove codocuments = false from [create]"
            )
        if not made.codocuments and self.gates.coherences:
            raise ValueError(
                f"[gates] {', '.join(self.gates.coherences)}: needs co-document counts; leave it "
                "out, or remove codocuments = false from [create]"
            )
        dated = refit.window_days is not None or refit.half_life_days is not None
        if dated and made.date_column is None and made.date_pattern == NO_PATTERN:
            raise ValueError(
                "[refit] window_days and half_life_days need dates, but [create] date_pattern "
                f'is "{NO_PATTERN}"'
            )
        return self


# Keys of a service's file. They are defined here, because the module with the configuration of a
# service imports this module.
_SERVICE = OtherFile(
    frozenset({"inbox", "tokens", "listen", "accumulate", "keep"}),
    "a service",
    "streaming-moments serve",
    "a night, such as night.toml",
)


def read_config(path: str | Path) -> NightlyConfig:
    """Read the configuration of the nightly run from a TOML file.

    Raises
    ------
    InvalidInput
        The file is unreadable or not TOML, or keys are unknown, missing or have wrong values. The
        message names each key with its section, and suggests the nearest known key.
    """
    return read_toml(NightlyConfig, path, _SERVICE)


def config_of(content: Mapping[str, Any], where: str) -> NightlyConfig:
    """Make the configuration from the content of a TOML file; errors as in `read_config`.

    Examples
    --------
    >>> content = {"store": "s", "shards": "*.txt", "output": "r", "refit": {"topics": 5}}
    >>> config_of(content, "night.toml").refit.topics
    (5,)
    >>> config_of({**content, "refit": {"topic": 5}}, "night.toml")
    Traceback (most recent call last):
        ...
    streaming_moments.errors.InvalidInput: night.toml: [refit] has no key 'topic'; did you mean \
'topics'?
    """
    return from_toml(NightlyConfig, content, where)
