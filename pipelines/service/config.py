"""Configuration of the service: a TOML file, validated key by key before the service listens."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.nightly.config import ClusterSection, NightlyConfig, read_config
from streaming_moments.pipelines.nightly.keys import (
    STRICT,
    Expiry,
    Place,
    Positive,
    Size,
    Time,
    tag_name,
)
from streaming_moments.pipelines.quantities import Count
from streaming_moments.pipelines.service.limits import LimitsSection
from streaming_moments.pipelines.toml_files import OtherFile, from_toml, read_toml
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.noted_options import without_effect
from streaming_moments.storage.log.commit_log import CommitLog

_LOCAL_NAMES = frozenset({"localhost"})

Port = Annotated[int, Field(ge=0, le=65_535)]


def _a_day_or_more(value: timedelta) -> timedelta:
    if value < timedelta(days=1):
        raise PydanticCustomError("greater_than_equal", "too short", {"ge": "1d"})
    return value


Kept = Annotated[Time, AfterValidator(_a_day_or_more)]


@dataclass(frozen=True, config=STRICT)
class ListenSection:
    """Address of the service; certificate and key are PEM files.

    `port` 0 uses any free port.
    """

    host: str = "127.0.0.1"
    port: Port = 8080
    certificate: str | None = None
    key: str | None = None
    origins: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _fits_together(self) -> ListenSection:
        given = {"certificate": self.certificate, "key": self.key}
        lacks = [name for name, value in given.items() if value is None]
        if len(lacks) == 1:
            [has] = given.keys() - lacks
            raise ValueError(f"{has} is given without {lacks[0]}; add {lacks[0]}, a PEM file")
        return self

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        if self.host in _LOCAL_NAMES:
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, config=STRICT)
class AccumulateSection:
    """When pending documents are sealed and counted, and when a model is fitted.

    With `within`, the server starts a process that counts; otherwise the user starts one by
    `streaming-moments accumulate`. If the process reports no shard, step or row block for
    `hung_after`, it is killed and restarted. `night` is the configuration file of a nightly run
    with this `store`, and with `INBOX/sealed/**/*.jsonl` as `shards`. The nightly run starts after
    `refit_documents` documents, or every `refit_every`, with its own steps and gates.
    """

    within: bool = True
    seal_after: Positive = timedelta(seconds=10)
    seal_documents: Count = 10_000
    seal_bytes: Size = 64 << 20
    lock_expiry: Expiry = timedelta(minutes=5)
    hung_after: Positive = timedelta(hours=1)
    night: str | None = None
    refit_documents: Count | None = None
    refit_every: Positive | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> AccumulateSection:
        timed = [
            name for name in ("refit_documents", "refit_every") if getattr(self, name) is not None
        ]
        if self.night is not None and not timed:
            raise ValueError(
                'night is given without a time when it runs; add refit_every = "24h" or '
                "refit_documents = 100000"
            )
        if self.night is None and timed:
            raise ValueError(
                f"{timed[0]} is given without a nightly run; add the configuration file of one, "
                'such as night = "night.toml"'
            )
        return self


@dataclass(frozen=True, config=STRICT)
class KeepSection:
    """How long the inbox keeps data after they were counted; a missing value means for ever.

    `keys` is for idempotency keys and receipts. If a request repeats a key after that time, its
    documents are counted again. `documents` is for the sealed shards. After that time, their
    documents cannot be deleted by receipt or id, and `polish` and `rebase` cannot read them.
    """

    keys: Kept | None = timedelta(days=90)
    documents: Kept | None = None


@dataclass(frozen=True, config=STRICT)
class ServiceConfig:
    """The configuration of the service.

    store : URL of the store
    inbox : URL of the inbox, created if it is missing; by default beside the store, with "-inbox"
        after its name
    tokens : file of tokens, made by `streaming-moments token`; without it, only this machine can
        reach the service, and any caller may do everything
    tag : tag of the model that answers requests; if no model has the tag, the latest one answers
    window : how long the first request of a batch waits for further requests
    refresh : how often the service looks for new versions, models and tokens
    documents : URL of a folder that `transform --top-documents` wrote; pages show its documents
    sample_documents : whether pages show a few lines of a document of each topic from the shards,
        if `documents` is not given
    storage_options : fsspec options of cloud URLs; never stored
    """

    store: Place
    inbox: Place | None = None
    tokens: str | None = None
    tag: Annotated[str, AfterValidator(tag_name)] = "published"
    window: Time = timedelta(milliseconds=50)
    refresh: Positive = timedelta(seconds=2)
    listen: ListenSection = ListenSection()
    limits: LimitsSection = LimitsSection()
    accumulate: AccumulateSection = AccumulateSection()
    keep: KeepSection = KeepSection()
    cluster: ClusterSection = ClusterSection()
    documents: Place | None = None
    sample_documents: bool = True
    storage_options: dict[str, Any] = Field(default_factory=dict, repr=False)

    @model_validator(mode="after")
    def _fits_together(self) -> ServiceConfig:
        if self.tokens is None and not self.listen.is_loopback:
            raise ValueError(
                f"[listen] host {self.listen.host!r} accepts other machines, but there are "
                "no tokens; create some by `streaming-moments token add FILE NAME --role writer` "
                "and give tokens = FILE, or listen on 127.0.0.1"
            )
        if _is_within(self.inbox_url, self.store):
            raise ValueError(
                f"the inbox {self.inbox_url} is in the folder of the store, where its files would "
                f"mix with those of the store; give another folder, such as "
                f"{self.store.rstrip('/')}-inbox"
            )
        if self.tokens is None and self.listen.origins:
            raise ValueError(
                "[listen] origins: pages of other web sites may call the service only with tokens; "
                "give tokens"
            )
        return self

    @property
    def inbox_url(self) -> str:
        """URL of the inbox."""
        return self.inbox or f"{self.store.rstrip('/')}-inbox"


def _is_within(inbox: str, store: str) -> bool:
    """Whether the inbox is the folder of the store, or in it."""
    inner, outer = (one if "://" in one else str(Path(one).resolve()) for one in (inbox, store))
    return f"{inner.rstrip('/')}/".startswith(f"{outer.rstrip('/')}/")


_NIGHT = OtherFile(
    frozenset({"shards", "output", "refit", "gates", "create", "update", "merge", "growth"}),
    "a night",
    "streaming-moments nightly",
    "a service, such as service.toml",
)


def read_service(path: str | Path) -> ServiceConfig:
    """Read the configuration of a service from a TOML file; errors as in `read_toml`."""
    return read_toml(ServiceConfig, path, _NIGHT)


def service_of(content: dict[str, Any], where: str) -> ServiceConfig:
    """Make the configuration from the content of a TOML file; errors as in `read_toml`.

    Examples
    --------
    >>> service_of({"store": "s", "listen": {"port": 8000}}, "service.toml").inbox_url
    's-inbox'
    >>> service_of({"store": "s", "listen": {"prot": 8000}}, "service.toml")
    Traceback (most recent call last):
        ...
    streaming_moments.errors.InvalidInput: service.toml: [listen] has no key 'prot'; did you mean \
'port'?
    """
    return from_toml(ServiceConfig, content, where)


def unused_options(config: ServiceConfig, shards: Iterable[str]) -> str:
    """Return why [storage_options] has no effect; empty if it has no keys, or if a URL uses it.

    `shards` are the counted shards; pages may show documents of these.
    """
    read = shards if config.storage_options and config.sample_documents else ()
    places = (config.store, config.inbox, config.documents, *read)
    return without_effect("[storage_options]", config.storage_options, places)


def require_first_night(config: ServiceConfig) -> None:
    """Raise InvalidInput if a nightly run must first create the store; name the command to run."""
    night, folder = night_of(config), Folder.at(config.store, config.storage_options or None)
    if night is None or night.create is None or CommitLog(folder).latest_version() is not None:
        return
    command = shlex.join(["streaming-moments", "nightly", str(config.accumulate.night)])
    raise InvalidInput(
        f"there is no store at {folder.url} yet; `{command}` creates it and publishes a model"
    )


def night_of(config: ServiceConfig) -> NightlyConfig | None:
    """Return the configuration of the nightly run that fits models for a service, or None.

    Raises InvalidInput if its store is not that of the service.
    """
    path = config.accumulate.night
    if path is None:
        return None
    night = read_config(path)
    options = config.storage_options or None
    mine, others = Folder.at(config.store, options).url, Folder.at(night.store, options).url
    if mine != others:
        raise InvalidInput(
            f"{path} names the store {others}, but the service uses {mine}; give both the same "
            "store"
        )
    # do not let the nightly run wait for the lock, because the service tries again later
    return replace(night, wait=timedelta(0))
