"""Remedies in the words of a night: keys of its file in place of options of `create`."""

from __future__ import annotations

import json
from dataclasses import fields

from streaming_moments.pipelines.jobs.kinds.options import option_of
from streaming_moments.pipelines.nightly.config import CreateSection
from streaming_moments.printing.remedies import of_commands


def of_nights(command: str, option: str, value: str) -> str:
    """Name a key of [create], or a command.

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
