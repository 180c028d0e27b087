"""Parts of a mixture of Gaussians, as a store keeps them, and its description."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from streaming_moments.models.base import Arrays, Attributes, Description
from streaming_moments.models.provenance import Polishing

_ARRAYS = ("means", "weights", "variances", "spectrum")
_BARS = ("bars", "weight_bars")
_SCALARS = (
    *("covariance", "told_apart", "documents", "without", "drawn_in", "negative"),
    *("since", "until", "half_life"),
)
_MANY = 0.01  # of the rows that are drawn in


def parts_of(model: Any) -> tuple[Arrays, Attributes]:
    """Arrays and attributes."""
    arrays = {name: getattr(model, name) for name in _ARRAYS}
    optional = {name: getattr(model, name) for name in _BARS}
    arrays |= {name: bars for name, bars in optional.items() if bars is not None}
    attributes = {name: getattr(model, name) for name in _SCALARS}
    polishing = model.polishing
    return arrays, {**attributes, "polishing": None if polishing is None else asdict(polishing)}


def fields_given(arrays: Arrays, attributes: Attributes) -> dict[str, Any]:
    """The fields of a model of `parts_of`; a KeyError or TypeError where one is missing."""
    told = dict(attributes)
    how = told.pop("polishing")
    return {**arrays, **told, "polishing": None if how is None else Polishing(**how)}


def description_of(model: Any) -> Description:
    """Weights, spreads and error bars of the components; what to beware of."""
    columns = {"weight": model.weights}
    if model.weight_bars is not None:
        columns["weight bar"] = model.weight_bars
    columns["spread"] = np.sqrt(model.variances.mean(axis=1))
    if model.bars is not None:
        columns["error bar"] = model.bars
    names = ("covariance", "told_apart", "without", "drawn_in", "negative")
    facts: dict[str, Any] = {name: getattr(model, name) for name in names}
    facts |= {"components": model.n_topics, "dimension": model.dimension}
    k = model.n_topics
    said = [f"{k} components of {model.dimension} dimensions, {model.covariance} variances"]
    if k > model.told_apart:
        said.append(
            f"the spectrum tells {model.told_apart} apart: beyond them components are noise, or "
            "means in the span of others"
        )
    elif k < model.told_apart:
        said.append(f"the spectrum tells {model.told_apart} apart: some are taken together")
    if model.drawn_in > _MANY * max(1, model.documents - model.without):
        said.append(
            f"{model.drawn_in:,} rows lay beyond the radius and were drawn in: more than "
            f"{_MANY:.0%}; rebase the store, or create it from a pilot like all rows"
        )
    if model.without:
        said.append(f"{model.without:,} records are no row of numbers and count for nothing")
    if model.negative:
        said.append(f"{model.negative} variances came out near 0 or below: ask for fewer")
    if model.polishing is not None:
        facts["polishing"] = asdict(model.polishing)
        said.append(model.polishing.sentence)
    return Description(facts, columns, "; ".join(said))
