"""Doors: where people meet a model (a command, a page, a call), and which models lack one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar

from streaming_moments.errors import InvalidInput

T = TypeVar("T")

# By door and model: why there is nothing, and what to do instead. All others have a row there.
ABSENT: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "transform": {
            "blockmodel": "is of all nodes of a graph, not of shards: `streaming-moments "
            "memberships` writes what it says of them"
        },
        "diff": dict.fromkeys(
            ("latent_tree", "factors"),
            "has no topics, states or clusters that can be matched with those of another; "
            "`streaming-moments topics --model` shows each",
        ),
        "polish": dict.fromkeys(
            ("independent", "views", "hmm", "latent_tree", "factors", "blockmodel"),
            "has no passes over documents; polish one of topics, poisson, communities or "
            "gaussian_mixture",
        ),
        "estimator": dict.fromkeys(
            ("poisson", "independent", "blockmodel"),
            "has no estimator; fit it by `Store.refit_as`",
        ),
    }
)


def row_of(rows: Mapping[str, T], model: str, door: str) -> T:
    """The row of a model in the table of a door; raises InvalidInput, with what to do, if none.

    Examples
    --------
    >>> row_of({"topics": 1}, "topics", "transform")
    1
    """
    if model in rows:
        return rows[model]
    others = f"is not known to {door}; give a model of {', '.join(rows)}"
    raise InvalidInput(f"model {model} {ABSENT.get(door, {}).get(model, others)}")
