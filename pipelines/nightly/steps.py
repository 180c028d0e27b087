"""Steps of a night in plain words, for lines and pages; reports and metrics have their keys."""

from __future__ import annotations

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
