"""Parts of a topic model, as a store keeps them, its description, and what it reads by."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics, InvalidInput, short
from streaming_moments.models.base import Arrays, Attributes, Description
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.provenance import Polishing, SecondStart
from streaming_moments.notebook import html_table
from streaming_moments.statistics.counts.batch import CountBatch

_STORED_METHOD = "rotation"  # what stores have called it from the first
_PAIR_WEIGHTS = "pair_weights"  # of a model that was refined
_FEW = 4  # times fewer entries than words of the model
_BARS = ("topic_bars", "word_bars")  # where halves are kept


def bars_known(model: Any) -> tuple[str, ...]:
    """Names of the error bars that it has."""
    return tuple(name for name in _BARS if getattr(model, name) is not None)


def reordered_fields(model: Any, order: NDArray[np.int64]) -> dict[str, Any]:
    """The arrays that have a column or an entry for each topic, with `order[j]` as topic j.

    Raises
    ------
    InvalidInput
        `order` does not name each topic once.
    """
    if sorted(order.tolist()) != list(range(model.n_topics)):
        raise InvalidInput(
            f"{order.tolist()} does not name each of {model.n_topics} topics once; "
            "give a permutation"
        )
    names = ("topics", "weights", "raw_topics", "umass", "npmi", *bars_known(model))
    moved = {name: np.ascontiguousarray(getattr(model, name)[..., order]) for name in names}
    return moved | {_PAIR_WEIGHTS: model.pair_weights[np.ix_(order, order)]}


def require_words(model: Any, batch: CountBatch) -> None:
    """Refuse documents that count another vocabulary than a model.

    Raises
    ------
    ForeignStatistics
        They do: names both.
    """
    if (batch.n_words, batch.vocabulary) != (model.n_words, model.vocabulary):
        raise ForeignStatistics(
            f"the model is of vocabulary {short(model.vocabulary)} ({model.n_words} words), "
            f"the documents count {short(batch.vocabulary)} ({batch.n_words} words); "
            "count them with the model's vocabulary"
        )


def smoothed(
    model: Any, smoothing: float, words: NDArray[np.int32] | slice = slice(None)
) -> NDArray[np.float64]:
    """(n, k) topics of a model with a share of M1 mixed in, all above 0; or rows of some words."""
    if not 0 < smoothing < 1:
        raise InvalidInput(f"smoothing is {smoothing}; it must be between 0 and 1")
    # a word that never occurred has M1 = 0: the floor keeps its logarithm finite
    mean = np.maximum(model.word_probabilities[words], 1e-12)
    return np.asarray((1 - smoothing) * model.topics[words] + smoothing * mean[:, None])


def as_read(
    model: Any, batch: CountBatch, smoothing: float
) -> tuple[CountBatch, NDArray[np.float64]]:
    """Documents and the smoothed topics that they are read by; of few words with their rows alone.

    The bits are the same: each document is read by the rows of its words.
    """
    require_words(model, batch)
    if _FEW * batch.words.size >= model.n_words:
        return batch, smoothed(model, smoothing)
    used, places = np.unique(batch.words, return_inverse=True)
    narrow = CountBatch(batch.indptr, places.astype(np.int32), batch.counts, max(1, used.size))
    rows = smoothed(model, smoothing, used) if used.size else np.ones((1, model.n_topics))
    return narrow, rows


def arrays_of(model: Any) -> dict[str, NDArray[np.float64]]:
    """The arrays by name."""
    names = (*model.stored, *((_PAIR_WEIGHTS,) if model.refined else ()), *bars_known(model))
    return {name: getattr(model, name) for name in names}


def attributes_of(model: Any) -> dict[str, object]:
    """The scalars by name."""
    names = ("alpha0", "method", "documents", "vocabulary", "basis")
    window = ("since", "until", "half_life")
    given = [name for name in window if getattr(model, name) is not None]
    given += ["refined"] if model.refined else []
    told = ((name, getattr(model, name)) for name in ("polishing", "held_out", "second_start"))
    return {name: asdict(one) for name, one in told if one is not None} | {
        _STORED_METHOD if name == "method" else name: getattr(model, name)
        for name in (*names, *given)
    }


def parts_of(model: Any) -> tuple[Arrays, Attributes]:
    """`arrays()` and `attributes()`."""
    return model.arrays(), model.attributes()


def fields_given(stored: tuple[str, ...], arrays: Arrays, attributes: Attributes) -> dict[str, Any]:
    """The fields of a model whose `stored` arrays and attributes these are.

    Raises
    ------
    InvalidInput
        A part is missing: names it.
    """
    refined = int(str(attributes.get("refined", 0)))
    bars = _BARS if any(name in arrays for name in _BARS) else ()
    wanted = (*stored, *((_PAIR_WEIGHTS,) if refined else ()), *bars)
    missing = [name for name in wanted if name not in arrays]
    missing += [name for name in ("alpha0", _STORED_METHOD, "documents") if name not in attributes]
    if missing:
        raise InvalidInput(f"the stored model lacks {', '.join(missing)}; refit it")
    half_life, passes = attributes.get("half_life"), attributes.get("polishing")
    held_out, second = attributes.get("held_out"), attributes.get("second_start")
    days = {name: attributes.get(name) for name in ("since", "until")}
    return {
        **{name: np.asarray(arrays[name], dtype=np.float64) for name in wanted},
        **{name: None if day is None else str(day) for name, day in days.items()},
        "half_life": None if half_life is None else float(str(half_life)),
        "refined": refined,
        "polishing": None if passes is None else Polishing(**passes),
        "held_out": None if held_out is None else HeldOut(**held_out),
        "second_start": None if second is None else SecondStart(**second),
        "alpha0": float(str(attributes["alpha0"])),
        "method": str(attributes[_STORED_METHOD]),
        "documents": int(str(attributes["documents"])),
        "vocabulary": str(attributes.get("vocabulary", "")),
        "basis": str(attributes.get("basis", "")),
    }


def description_of(model: Any) -> Description:
    """What a topic model says of itself."""
    facts = {name: getattr(model, name) for name in ("n_topics", "alpha0", "method", "captured")}
    facts["alpha"] = model.alpha.tolist()
    sentence = f"captured spectrum {model.captured:.2f}"
    sentence += f"; alpha0 {model.alpha0:g}" if model.alpha0 else ""
    if model.refined:
        facts |= {"refined": model.refined, "correlations": model.correlations.tolist()}
        facts["implied_alpha0"] = model.implied_alpha0
        sentence += f"; refined {model.refined} rounds by the pairs of words"
        if model.implied_alpha0 is not None:
            sentence += f", which imply alpha0 {model.implied_alpha0:.3g}"
    columns = {} if model.topic_bars is None else {"error bar": model.topic_bars}
    if columns and not model.refined:
        sentence += "; error bars are made for refined topics, of these they may be twice too long"
    if model.held_out is not None:
        facts["held_out"] = asdict(model.held_out) | {"mean": model.held_out.mean}
        had = "has" if model.polishing is None else "had, before it was polished,"
        sentence += f"; a pair held out {had} log likelihood {model.held_out.mean:.4f}"
    if model.second_start is not None:
        facts["second_start"] = asdict(model.second_start) | {"kept": model.second_start.kept}
        sentence += f"; {model.second_start.sentence}"
    if model.polishing is not None:
        facts["polishing"] = asdict(model.polishing)
        sentence += f"; {model.polishing.sentence}"
        if columns:
            facts["error_bars_of"] = "the fit before it was polished"
            sentence += "; error bars are of the fit before that"
    return Description(facts, columns, sentence)


def as_html(model: Any) -> str:
    """What a notebook shows of it: a row a topic."""
    scores = enumerate(zip(model.weights, model.npmi, strict=True))
    rows = [(place, f"{share:.1%}", f"{npmi:.2f}") for place, (share, npmi) in scores]
    said = f"{model.n_topics} topics of {model.n_words:,} words and {model.documents:,} documents"
    return html_table(said, ["topic", "share", "NPMI"], rows)
