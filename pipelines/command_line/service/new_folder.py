"""The folder of a new service: configuration, night, tokens and example documents."""

from __future__ import annotations

import json
import random
from datetime import date, timedelta
from pathlib import Path
from types import MappingProxyType

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.service.tokens import Role, add_token

_SERVICE = """\
# The service: streaming-moments serve service.toml
store = "store"              # the first night creates it
tokens = "tokens.json"       # of callers: streaming-moments token add tokens.json NAME

[listen]
host = "127.0.0.1"           # "0.0.0.0": other machines may call as well
port = 8080

[accumulate]
seal_after = "10s"           # counts new documents at least this often
night = "night.toml"         # fits and publishes a model
refit_every = "24h"
"""
_NIGHT = """\
# A night: streaming-moments nightly night.toml
store = "store"
shards = ["documents.jsonl", "store-inbox/sealed/**/*.jsonl"]   # examples, and what the service got
output = "reports"

[create]                     # how the first night creates the store; options of `create`
languages = ["auto"]         # removes the stop words of the languages that it finds
max_topics = 16
min_documents = 3

[refit]
topics = 3                   # "auto": as many as the documents show
"""
_DOCUMENTS = 300
_DAYS = 30
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


def write_folder(folder: Path, today: date) -> str:
    """Write the files of a service into a new folder, and return the token of its admin.

    The example documents are of the days before `today`. InvalidInput if the folder holds anything.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} exists and is not an empty folder; give another name")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "service.toml").write_text(_SERVICE, encoding="utf-8")
    (folder / "night.toml").write_text(_NIGHT, encoding="utf-8")
    lines = [json.dumps(document) + "\n" for document in _examples(today)]
    (folder / "documents.jsonl").write_text("".join(lines), encoding="utf-8")
    return add_token(folder / "tokens.json", "admin", Role.ADMIN)


def _examples(today: date) -> list[dict[str, str]]:
    """Documents about one theme each, with a few words of another."""
    rng, documents = random.Random(0), []
    for number in range(_DOCUMENTS):
        theme, other = rng.sample([*_THEMES], 2)
        words = [*_THEMES[theme] * 5, *_THEMES[other]]
        sentences = [
            text.format(*rng.sample(words, text.count("{}")))
            for text in rng.choices(_SENTENCES, k=5)
        ]
        day = today - timedelta(days=rng.randrange(_DAYS))
        documents.append(
            {"id": f"example-{number}", "date": day.isoformat(), "text": " ".join(sentences)}
        )
    return documents
