"""Words in messages of a nightly run: names of its steps, and keys of its configuration.

The messages name these keys in place of options of commands.

Reports and metrics use the keys of the steps, not these names.
"""

from __future__ import annotations

import json
from dataclasses import fields

from streaming_moments.pipelines.jobs.kinds.options import option_of
from streaming_moments.pipelines.nightly.config import CreateSection
from streaming_moments.printing.remedies import of_commands

_WORDS = {
    "list": "find shards",
    "create": "create the store",
    "merge": "merge other sites",
    "update": "count new shards",
    "drift": "compare with earlier data",
    "rebase": "choose all words again",
    "growth": "add new words",
    "refit": "fit the model",
    "polish": "polish the model",
    "match": "match the published model",
    "judge": "check the gates",
    "publish": "save the model",
    "report": "write the report",
}
WIDEST = max(map(len, _WORDS.values()))


def in_words(step: str) -> str:
    """Name a step of a report in plain words; an unknown step keeps its name.

    Examples
    --------
    >>> in_words("drift"), in_words("judge")
    ('compare with earlier data', 'check the gates')
    """
    return _WORDS.get(step, step)


def of_nights(command: str, option: str, value: str) -> str:
    """Name an option of `create` as a key of [create], and any other option as a command.

    Examples
    --------
    >>> of_nights("create", "passage_words", "200"), of_nights("create", "language", "none")
    ('`[create] passage_words = 200`', '`[create] languages = ["none"]`')
    """
    own = next((one for one in fields(CreateSection) if option_of(one) == option), None)
    if command != "create" or own is None:
        return of_commands(command, option, value)
    given = value if not value or value.isdigit() else json.dumps(value)
    given = f"[{given}]" if given and isinstance(own.default, tuple) else given
    return f"`[create] {own.name}{f' = {given}' if given else ''}`"
