"""The folder of a new service: configuration, night, tokens and example documents."""

from __future__ import annotations

import json
import os
import random
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.service.tokens import Role, add_token
from streaming_moments.storage.files.backends import remedy_of

_SERVICE = """\
# The service: streaming-moments serve service.toml
# Paths start at the folder in which the command runs.
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
shards = [
    "documents/*.jsonl",     # examples; the name of a file is its day
    "store-inbox/sealed/**/*.jsonl",   # what the service got; the first night finds nothing here
]
output = "reports"

[create]                     # how the first night creates the store; options of `create`
languages = ["auto"]         # removes the stop words of the languages that it finds
max_topics = 16
min_documents = 3

[refit]
topics = [2, 3, 4, 6]        # compares these and takes the best; "auto": compares more
"""
_WEEKS, _EACH = 4, 75  # days with documents, a week apart, and documents of each
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

    The example documents are of days up to `today`. The folder is there with all files, or not at
    all. InvalidInput if the folder holds anything or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} exists and is not an empty folder; give another name")
    whole = folder.resolve()
    try:
        whole.parent.mkdir(parents=True, exist_ok=True)
        # a shell stays in its own folder, so only the files go there, the configuration last
        closed = whole.is_dir() and not os.access(whole.parent, os.W_OK)
        inside = whole == Path.cwd() or closed
        with TemporaryDirectory(prefix=".new-", dir=whole if inside else whole.parent) as name:
            staged = Path(name, "new")
            staged.mkdir()
            (staged / "service.toml").write_text(_SERVICE, encoding="utf-8")
            (staged / "night.toml").write_text(_NIGHT, encoding="utf-8")
            (staged / "documents").mkdir()
            for day, documents in _examples(today).items():
                lines = "".join(json.dumps(document) + "\n" for document in documents)
                (staged / "documents" / f"{day}.jsonl").write_text(lines, encoding="utf-8")
            token = add_token(staged / "tokens.json", "admin", Role.ADMIN)
            if not inside:
                staged.replace(whole)
            else:
                for path in sorted(staged.iterdir(), key=lambda one: one.name == "service.toml"):
                    path.rename(whole / path.name)
    except OSError as error:
        remedy = remedy_of(error) or "give another folder"
        raise InvalidInput(f"{folder} cannot be written ({error.strerror}); {remedy}") from error
    return token


def _examples(today: date) -> dict[str, list[dict[str, str]]]:
    """Documents by day, about one theme each, with a few words of another.

    The last theme becomes more frequent, so that the page of time has something to show.
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
