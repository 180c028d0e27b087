"""Configuration of the nightly run: a TOML file, checked key by key before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, cast

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
from streaming_moments.pipelines.jobs.compact import COMPACT_AFTER
from streaming_moments.pipelines.jobs.create import CountingOptions, PilotOptions
from streaming_moments.pipelines.jobs.grow import WORDS
from streaming_moments.pipelines.jobs.kinds.create_kinds import require_options_of
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.pipelines.jobs.kinds.registry import KIND_JOBS
from streaming_moments.pipelines.nightly.gates import GatesSection
from streaming_moments.pipelines.nightly.keys import (
    STRICT,
    Expiry,
    Place,
    ShardUrl,
    Size,
    Time,
    collected,
    listed,
    tag_name,
)
from streaming_moments.pipelines.nightly.refit_config import RefitSection
from streaming_moments.pipelines.quantities import Count, Number, Share
from streaming_moments.pipelines.toml_files import from_toml, read_toml
from streaming_moments.quality.drift import DriftBounds
from streaming_moments.statistics.registry import KINDS
from streaming_moments.statistics.views.sketches import WHOLE
from streaming_moments.storage.dates import NO_PATTERN, Bucket
from streaming_moments.storage.formats import ReadLimits


@dataclass(frozen=True, config=STRICT)
class CreateSection(KindOptions, CountingOptions, PilotOptions):
    """How the store is made on the first night; keys as the options of `create`."""

    @field_validator("*")
    @classmethod
    def _usable(cls, value: Any, info: ValidationInfo) -> Any:
        check = cls.__dataclass_fields__[str(info.field_name)].metadata["check"]
        if check is not None and value is not None:
            check(value)
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> CreateSection:
        _ = self.form, self.dates
        require_options_of(self.shape, self.counting, self.pilot)
        if misfit := KIND_JOBS[self.kind].misfit(self.pilot):
            raise ValueError(misfit)
        return self

    @property
    def sketches(self) -> bool:
        """Whether sketches are asked for where words as few would be kept whole without."""
        return self.sketch_columns is not None and self.sketch_columns <= WHOLE

    @property
    def shape(self) -> KindOptions:
        """What is counted of any kind."""
        return cast("KindOptions", self._of(KindOptions))

    @property
    def counting(self) -> CountingOptions:
        """What a document is."""
        return cast("CountingOptions", self._of(CountingOptions))

    @property
    def pilot(self) -> PilotOptions:
        """How vocabulary and basis are made."""
        return cast("PilotOptions", self._of(PilotOptions))

    def _of(self, options: Any) -> Any:
        return options(**{part.name: getattr(self, part.name) for part in fields(options)})


@dataclass(frozen=True, config=STRICT)
class UpdateSection:
    """How new shards are counted."""

    skip_bad_shards: bool = True
    unique: bool = False
    compact_after: Number = COMPACT_AFTER
    compact_by: Bucket = "day"
    max_document_bytes: Size = 8 << 20
    commit_every: Time = timedelta(seconds=COMMIT_EVERY)

    @property
    def limits(self) -> ReadLimits:
        """Bounds on documents."""
        return ReadLimits(self.max_document_bytes)


@dataclass(frozen=True, config=STRICT)
class RebaseSection:
    """From which drift on words and basis are made anew; what is not given never is a reason."""

    min_captured: Share | None = None
    max_outside_share: Share | None = None
    max_pair_distance: Share | None = None
    allow_missing: bool = False
    not_again_for: Time = timedelta(days=7)

    @property
    def bounds(self) -> DriftBounds:
        """The drift that is allowed."""
        return DriftBounds(self.min_captured, self.max_outside_share, None, self.max_pair_distance)


@dataclass(frozen=True, config=STRICT)
class GrowthSection:
    """From which share of tonight's tokens outside the vocabulary words are added, and how many.

    The share must also be larger by `outside_rise` than that of what was counted before, where
    anything was: a vocabulary that never had those words lacks them every night. No words are added
    to a vocabulary that has `most_words`.
    """

    enabled: bool = True
    outside_above: Share = 0.05
    outside_rise: Share = 0.0
    words: Count = WORDS
    most_words: Count | None = None


# Of a night that says nothing of it: nobody watches how large the vocabulary gets.
_GROWTH = GrowthSection(outside_rise=0.02)
MOST_TIMES = 2  # as many words as the store was asked for


@dataclass(frozen=True, config=STRICT)
class ClusterSection:
    """Where it runs, as the options of every command."""

    scheduler: ShardUrl | None = None
    workers: Number = 0
    memory: Size | None = None
    worker_timeout: Time = timedelta(seconds=WORKER_TIMEOUT)
    dashboard: bool = False
    performance_report: str | None = None


@dataclass(frozen=True, config=STRICT)
class MetricsSection:
    """Where the metrics of each run are written: a local file that the node exporter reads."""

    textfile: Annotated[str, AfterValidator(collected)]


@dataclass(frozen=True, config=STRICT)
class NightlyConfig:
    """All that a nightly run is told.

    Parameters
    ----------
    store : str
        URL of the store.
    shards : tuple of str
        Patterns of shards; those that match nothing yet are no error.
    output : str
        URL of the folder for reports.
    refit : RefitSection
        Topics, alpha0 and method.
    create : CreateSection, optional
        How the store is made if there is none; without it that is an error.
    update, rebase, gates, cluster : sections
        The other steps; without [rebase] there never is one.
    growth : GrowthSection, optional
        When words are added; without [growth] where the share of tokens outside the vocabulary is
        above 5% and has risen by 2 points, until there are twice the words that were asked for.
    metrics : MetricsSection, optional
        Where metrics are written; without [metrics] there are none.
    tag : str
        The tag that stands for the published model.
    lock_expiry : timedelta
        After so long without a word a run counts as dead, and the next takes over.
    wait : timedelta
        For how long another run is waited for, such as a turn of a service that counts.
    sample_documents : bool
        Whether report and page show a few lines of a document of each topic.
    storage_options : mapping
        fsspec options of cloud URLs; never stored.
    """

    store: Place
    shards: Annotated[tuple[ShardUrl, ...], Field(min_length=1), BeforeValidator(listed)]
    output: Place
    refit: RefitSection
    create: CreateSection | None = None
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
        """When words are added; None where they never are."""
        family, section = self.refit.family, self.growth or _GROWTH
        adds = KINDS[family.kind].adds_words and family is not LatentTree
        return section if section.enabled and adds else None

    @model_validator(mode="after")
    def _fits_together(self) -> NightlyConfig:
        made, refit = self.create, self.refit
        self.gates.require_known(refit)
        kind = refit.family.kind
        for name, section in (("rebase", self.rebase), ("growth", self.growth)):
            if section is not None and not KINDS[kind].adds_words:
                raise ValueError(f"[{name}] is of documents, not of kind {kind}; leave it out")
        if self.growth is not None and refit.family is LatentTree:
            raise ValueError("[growth] is of words, not of categories; leave it out, or [rebase]")
        if made is None:
            return self
        if made.kind != kind:
            raise ValueError(
                f"[refit] model {refit.model!r} is of statistics of kind {kind}, and [create] "
                f"kind is {made.kind!r}"
            )
        several = len(refit.topics) * len(refit.alpha0) > 1
        if several and not refit.topical and not made.halves:
            raise ValueError(
                "[refit] topics and alpha0 are several, and cannot be compared with [create] "
                "halves = false"
            )
        # without halves the spectrum tells the components of rows
        if refit.auto and refit.family.holds_out not in ("", "rows") and not made.halves:
            key, word = next(iter(refit.auto.items()))
            raise ValueError(
                f"[refit] {key} is {word}, which halves of the records tell; give a "
                "number, or leave out [create] halves = false"
            )
        held_out = ", ".join(self.gates.held_out)
        if held_out and not made.halves:
            raise ValueError(
                f"[gates] {held_out}: nothing is held out with [create] halves = false; leave out "
                "one of them"
            )
        whole = refit.family.holds_out in ("triples", "edges")
        if (held_out or several) and whole and made.sketches:
            what = f"[gates] {held_out}" if held_out else "[refit] topics and alpha0"
            raise ValueError(
                f"{what}: no {refit.family.holds_out} are held out of sketches; leave out "
                f"[create] sketch_columns, as up to {WHOLE} words or symbols are kept whole"
            )
        if not made.codocuments and several:
            raise ValueError(
                "[refit] topics and alpha0 are several, and cannot be compared with [create] "
                "codocuments = false"
            )
        if not made.codocuments and self.gates.coherences:
            raise ValueError(
                f"[gates] {', '.join(self.gates.coherences)}: no coherence is known with [create] "
                "codocuments = false; leave out one of them"
            )
        dated = refit.window_days is not None or refit.half_life_days is not None
        if dated and made.date_column is None and made.date_pattern == NO_PATTERN:
            raise ValueError(
                f"[refit] window_days and half_life_days need dates, and [create] date_pattern is "
                f'"{NO_PATTERN}"'
            )
        return self


def read_config(path: str | Path) -> NightlyConfig:
    """Read the configuration of a night from a TOML file.

    Raises
    ------
    InvalidInput
        The file cannot be read, is not TOML, or has keys that are unknown, missing or of a wrong
        value: names each with its section, an unknown one with the nearest known.
    """
    return read_toml(NightlyConfig, path)


def config_of(content: Mapping[str, Any], where: str) -> NightlyConfig:
    """Make the configuration of the content of a TOML file; errors as `read_config`.

    Examples
    --------
    >>> content = {"store": "s", "shards": "*.txt", "output": "r", "refit": {"topics": 5}}
    >>> config_of(content, "night.toml").refit.topics
    (5,)
    >>> config_of({**content, "refit": {"topic": 5}}, "night.toml")
    Traceback (most recent call last):
        ...
    streaming_moments.errors.InvalidInput: night.toml: [refit] has no key 'topic', did you mean \
'topics'?
    """
    return from_toml(NightlyConfig, content, where)
