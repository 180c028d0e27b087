"""The folder of a new service: configuration, night, tokens and example documents."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from streaming_moments.pipelines.command_line.new_folders.examples import write_examples
from streaming_moments.pipelines.command_line.new_folders.night import configuration
from streaming_moments.pipelines.command_line.new_folders.writing import write_new_folder
from streaming_moments.pipelines.service.tokens import Role, add_token

_SERVICE = """\
# The service: streaming-moments serve service.toml
# Paths start at the folder in which the command runs.
store = "store"              # the first night creates it
tokens = "tokens.json"       # of callers: streaming-moments token add tokens.json NAME

[listen]
host = "127.0.0.1"           # "0.0.0.0": other machines can call it, too
port = 8080

[accumulate]
seal_after = "10s"           # counts new documents at least this often
night = "night.toml"         # fits and publishes a model
refit_every = "24h"
"""


def write_folder(folder: Path, today: date) -> str:
    """Write the files of a service into a new folder, and return the token of its admin.

    The example documents are of days up to `today`. Errors as in `write_new_folder`.
    """

    def write(staged: Path) -> str:
        (staged / "service.toml").write_text(_SERVICE, encoding="utf-8")
        night = configuration(sealed="store-inbox/sealed/**/*.jsonl")
        (staged / "night.toml").write_text(night, encoding="utf-8")
        write_examples(staged / "documents", today)
        return add_token(staged / "tokens.json", "admin", Role.ADMIN)

    return write_new_folder(folder, write, last="service.toml")
