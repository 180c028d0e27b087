"""Example documents of new folders: short texts about three themes, in one shard for each day."""

from __future__ import annotations

import json
import random
from datetime import date, timedelta
from pathlib import Path
from types import MappingProxyType

# The examples have documents on one day of each of `_WEEKS` weeks, `_EACH` on each of these days.
_WEEKS, _EACH = 4, 75
_THEMES = MappingProxyType(
    {
        "sea": ("ship", "harbour", "sail", "storm", "captain", "anchor", "tide", "crew"),
        "court": ("judge", "law", "trial", "witness", "jury", "verdict", "appeal", "prison"),
        "kitchen": ("bread", "oven", "salt", "butter", "recipe", "soup", "flour", "cook"),
    }
)
_SENTENCES = (
    "The {} and the {} were there before the {}.",
    "It was the {} that we saw with the {}.",
    "They had no {}, but some of them had the {} and the {}.",
    "Is this the {} or is it the {}?",
)


def write_examples(folder: Path, today: date) -> None:
    """Write shards of JSON Lines into a new folder, one for each day; the last day is `today`."""
    folder.mkdir()
    for day, documents in _examples(today).items():
        lines = "".join(json.dumps(document) + "\n" for document in documents)
        (folder / f"{day}.jsonl").write_text(lines, encoding="utf-8")


def _examples(today: date) -> dict[str, list[dict[str, str]]]:
    """Return documents by day; each is about one theme, with a few words of another theme.

    The last theme becomes more frequent, so that shares of topics change over time.
    """
    rng, documents = random.Random(0), dict[str, list[dict[str, str]]]()
    names = [*_THEMES]
    for number in range(_WEEKS * _EACH):
        week = number // _EACH
        weights = [3, 3, 1 + 2 * week]
        [theme] = rng.choices(names, weights)
        other = rng.choice([name for name in names if name != theme])
        words = [*_THEMES[theme] * 5, *_THEMES[other]]
        sentences = [
            text.format(*rng.sample(words, text.count("{}")))
            for text in rng.choices(_SENTENCES, k=5)
        ]
        day = (today - timedelta(weeks=_WEEKS - 1 - week)).isoformat()
        document = {"id": f"example-{number}", "date": day, "text": " ".join(sentences)}
        documents.setdefault(day, []).append(document)
    return documents
