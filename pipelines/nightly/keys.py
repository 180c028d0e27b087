"""Types of the values in the configuration of the nightly run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, timedelta
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from streaming_moments.decompositions.methods import METHODS
from streaming_moments.models.registry import MODELS
from streaming_moments.pipelines.quantities import Count, alpha0_of, size_of, time_of
from streaming_moments.statistics.half_life import LONGEST_HALF_LIFE
from streaming_moments.storage.files.backends import require_bucket_name
from streaming_moments.storage.files.urls import require_no_secret, require_no_user
from streaming_moments.storage.log.layout import require_name
from streaming_moments.storage.log.locks import LONGEST_EXPIRY

# rules that all sections of the configuration follow
STRICT = ConfigDict(extra="forbid", allow_inf_nan=False, str_min_length=1)
# a nightly run names its model by this prefix and the version to which the model was fitted
PREFIX = "night-v"


def require_one_of(name: str, names: Iterable[str]) -> str:
    if name not in names:
        raise ValueError(f"{name!r} is not one of {', '.join(map(repr, names))}")
    return name


def _one_of(names: Iterable[str]) -> AfterValidator:
    return AfterValidator(partial(require_one_of, names=names))


def collected(path: str) -> str:
    if "://" in path or not path.endswith(".prom"):
        raise ValueError(
            f"{path} is not a local file named *.prom, and the node exporter reads only these"
        )
    return path


def tag_name(name: str) -> str:
    if re.fullmatch(rf"{PREFIX}\d+", require_name(name)):
        raise ValueError(f"{name!r} is the name of a model of a nightly run; choose another tag")
    return name


def positive(value: timedelta) -> timedelta:
    if value <= timedelta(0):
        raise PydanticCustomError("greater_than", "too short", {"gt": "0s"})
    return value


def short_enough(value: timedelta) -> timedelta:
    if value > LONGEST_EXPIRY:
        raise PydanticCustomError("less_than_equal", "too long", {"le": f"{LONGEST_EXPIRY.days}d"})
    return value


def listed(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else (value,)


Place = Annotated[str, AfterValidator(require_no_secret), AfterValidator(require_bucket_name)]
ShardUrl = Annotated[str, AfterValidator(require_no_user), AfterValidator(require_bucket_name)]
Size = Annotated[int, BeforeValidator(size_of)]
Time = Annotated[timedelta, BeforeValidator(time_of)]
Positive = Annotated[Time, AfterValidator(positive)]
Expiry = Annotated[Positive, AfterValidator(short_enough)]
Method = Annotated[str, _one_of(METHODS)]
Family = Annotated[str, _one_of(tuple(MODELS))]
Topics = Annotated[tuple[Count, ...], Field(min_length=1), BeforeValidator(listed)]
Alpha = Annotated[float | Literal["auto"], AfterValidator(alpha0_of)]
Alphas = Annotated[tuple[Alpha, ...], Field(min_length=1), BeforeValidator(listed)]
Days = Annotated[int, Field(ge=1, le=date.max.toordinal())]
HalfLife = Annotated[float, Field(gt=0, le=LONGEST_HALF_LIFE)]
