"""Hidden Markov chains: ours, and hmmlearn from five random starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from hidden.sequence_ways import Hmmlearn, OurMarkov, markov_of
from hidden.sequences import PlantedSequences, Symbols, TextSymbols, lengths_of

from peers.cases import STARTS, TRUTH, Case, best


def _ours(polish: int | str, data: Symbols, seed: int) -> Any:
    return OurMarkov(polish=polish).fit(data).model_


def _peer(data: Symbols, seed: int) -> Any:
    tried = [_from(data, 1 + seed * STARTS + at) for at in range(STARTS)]
    return markov_of(best(tried, lambda one: one.monitor_.history[-1]))


def _from(data: Symbols, seed: int) -> Any:
    way = Hmmlearn(seed=seed)
    return way.fit(way.prepare(data))


def _truth(data: Symbols, seed: int) -> Any:
    truth, way = data.truth, Hmmlearn(tolerance=1e-8)
    assert truth is not None
    model = way.begun(data, way.rounds, init_params="")
    model.emissionprob_, model.transmat_ = truth.emission.T, truth.transition.T
    model.startprob_ = truth.start
    model.fit(data.training.symbols.reshape(-1, 1), lengths_of(data.training))
    return markov_of(model)


WAYS = {
    "ours, by moments": partial(_ours, 0),
    "ours, polish auto": partial(_ours, "auto"),
    f"hmmlearn, likeliest of {STARTS}": _peer,
}


def planted() -> Iterator[Case]:
    """Chains of three shapes."""
    ways = {**WAYS, TRUTH: _truth}
    for shape in ((10_000, 50, 5), (30_000, 50, 5), (20_000, 12, 6)):
        source = PlantedSequences(*shape)
        name = f"{shape[0]:,} symbols of {shape[1]}, {shape[2]} states"
        yield Case(name, partial(_drawn, source), ways, _figures)


def real() -> Iterator[Case]:
    """Letters and words of the addresses, or of a file of texts in `TEXTS`."""
    path = os.environ.get("TEXTS", "")
    for states, words, most in ((10, 1999, 100_000), (6, 0, 150_000), (12, 0, 150_000)):
        source = TextSymbols(states, path, words=words, most=most)
        yield Case(source.name, partial(_read, source), WAYS, partial(_held_out, source))


def _drawn(source: PlantedSequences, seed: int) -> Symbols:
    return replace(source, seed=seed, draw=seed).load()


def _read(source: TextSymbols, seed: int) -> Symbols:
    return source.load()


def _figures(found: Any, data: Symbols) -> dict[str, float]:
    told = PlantedSequences.score(None, found, data)  # type: ignore[arg-type] - asks only the data
    return {key: told[key] for key in ("error", "excess")}


def _held_out(source: TextSymbols, found: Any, data: Symbols) -> dict[str, float]:
    return {"perplexity": source.score(found, data)["perplexity"]}
