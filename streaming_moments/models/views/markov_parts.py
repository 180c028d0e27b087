"""Parts of a hidden Markov model, as a store keeps them, and its description."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import Arrays, Attributes, Description
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.views.columns import said_of_turned
from streaming_moments.models.views.transitions import Operators
from streaming_moments.statistics.sequences.windows import SymbolBatch


def parts_of(model: Any) -> tuple[Arrays, Attributes]:
    """Arrays and attributes."""
    names = ("emission", "moves", "start", "weights", "spectrum", "symbol_shares")
    arrays = {name: getattr(model, name) for name in names}
    if model.bars is not None and model.word_bars is not None:
        arrays |= {"bars": model.bars, "word_bars": model.word_bars}
    if model.observable is not None:
        ops = model.observable
        arrays |= {"operators": ops.symbols, "first": ops.first, "last": ops.last}
    scalars = ("documents", "windows", "short", "turned", "beginnings", "untold", "refined")
    attributes = {name: getattr(model, name) for name in (*scalars, "since", "until")}
    score = None if np.isnan(model.window_score) else model.window_score
    attributes |= {} if model.held_out is None else {"held_out": asdict(model.held_out)}
    return arrays, {**attributes, "half_life": model.half_life, "window_score": score}


def window_perplexity(held_out: HeldOut) -> float:
    """Of a symbol, from the likelihood of windows of three.

    Examples
    --------
    >>> round(window_perplexity(HeldOut(-3.0, -3.0)), 4)
    2.7183
    """
    return float(np.exp(-held_out.mean / 3))


def fields_given(arrays: Arrays, attributes: Attributes) -> dict[str, Any]:
    """The fields of a model of `parts_of`; a KeyError or TypeError where one is missing."""
    own: Any = dict(arrays)
    names = [name for name in ("operators", "first", "last") if name in own]
    observable = Operators(*map(own.pop, names)) if names else None
    score = attributes["window_score"]
    held_out = attributes.get("held_out")
    scalars = {
        **attributes,
        "window_score": float("nan") if score is None else score,
        "held_out": None if held_out is None else HeldOut(**held_out),
    }
    return {**own, "observable": observable, **scalars}


def description_of(model: Any) -> Description:
    """Shares of the states, how they begin and stay, error bars; what to beware of."""
    columns = {"weight": model.weights, "start": model.start, "stays": np.diag(model.moves)}
    if model.bars is not None:
        columns["error bar"] = model.bars
    names = (
        "windows",
        "short",
        "turned",
        "beginnings",
        "untold",
        "refined",
        "rare",
        "window_score",
    )
    facts: dict[str, Any] = {name: getattr(model, name) for name in names}
    if model.held_out is not None:
        facts["held_out"] = asdict(model.held_out) | {"mean": model.held_out.mean}
    facts |= {"moves": model.moves.T.tolist(), "operators": model.observable is not None}
    said = [f"{model.windows:,} windows of three symbols"]
    if model.refined:
        said.append(f"refined {model.refined} rounds by them")
    if model.held_out is not None:
        said.append(
            f"a window held out had log likelihood {model.held_out.mean:.4f}, perplexity "
            f"{window_perplexity(model.held_out):.4g} a symbol"
        )
    if model.short:
        said.append(f"{model.short:,} sequences have fewer than three symbols")
    if model.start is model.weights or np.array_equal(model.start, model.weights):
        said.append("too few sequences to tell how they begin: as the states are everywhere")
    if model.untold:
        said.append(f"of {model.untold} states nothing tells what follows: all alike")
    if model.turned and not model.refined:
        said.append(said_of_turned(model.turned))
    if model.rare:
        said.append("symbols are rare: read by the parameters, operators are mostly noise")
    return Description(facts, columns, "; ".join(said))


def triple_views_of(
    model: Any,
) -> tuple[tuple[NDArray[np.float64], ...], NDArray[np.float64], float]:
    """Columns of the middle, the first and the last symbol of a window, their weights, and 0."""
    joint = model.moves * model.weights
    middle = joint.sum(axis=1)
    before = joint.T / np.where(middle > 0, middle, 1)
    outer = model.emission @ before, model.emission @ model.moves
    return (model.emission, *outer), middle, 0.0


def known_symbols(batch: SymbolBatch) -> int:
    """How many symbols are of the alphabet; InvalidInput of none."""
    known = int((batch.symbols >= 0).sum())
    if not known:
        raise InvalidInput("none of the symbols is of the alphabet; give sequences of others")
    return known
