"""The folder of a new service: configurations, tokens and example documents."""

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


_README = """\
# A service of topics

This folder was written by `streaming-moments serve --init`. Run all commands in it.

| file | what it holds |
| --- | --- |
| `service.toml` | the configuration of the service: store, tokens, port, and when to count |
| `night.toml` | the nightly job: how to create the store, fit a model and publish it |
| `tokens.json` | hashes of the tokens of the callers |
| `documents` | 300 example documents of four days |

The first run of the nightly job creates the store from the examples and publishes a model. It
takes seconds:

```sh
streaming-moments nightly night.toml
```

The service runs until you press Ctrl-C. It writes the documents that it receives to the folder
`store-inbox`, counts them in the folder `store`, and runs the nightly job every 24 hours:

```sh
streaming-moments serve service.toml
```

Open http://localhost:8080/ and type the token as the password. `--init` printed it once. If it is
lost, make another one:

```sh
streaming-moments token add tokens.json me --role admin
```

Send a document from another terminal, in which you first set TOKEN to the token:

```sh
curl --fail-with-body http://localhost:8080/v1/documents -H "Authorization: Bearer $TOKEN" \\
     -H "Idempotency-Key: first" -H 'Content-Type: application/json' \\
     -d '[{"id": "1", "text": "the storm and the ship in the harbour"}]'
```

To use your own documents, replace the files in `documents` before the nightly job runs for the
first time. All calls are at http://localhost:8080/docs, and the pages show what is counted and what
needs attention.
"""


def write_folder(folder: Path, today: date) -> str:
    """Write the files of a service into a new folder, and return the token of its admin.

    The last day of the example documents is `today`. Errors as in `write_new_folder`.
    """

    def write(staged: Path) -> str:
        (staged / "service.toml").write_text(_SERVICE, encoding="utf-8")
        night = configuration(sealed="store-inbox/sealed/**/*.jsonl")
        (staged / "README.md").write_text(_README, encoding="utf-8")
        (staged / "night.toml").write_text(night, encoding="utf-8")
        write_examples(staged / "documents", today)
        return add_token(staged / "tokens.json", "admin", Role.ADMIN)

    return write_new_folder(folder, write, last="service.toml")
