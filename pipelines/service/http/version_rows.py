"""Rows of the page of versions: commits in plain words, grouped by the run that made them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from streaming_moments.pipelines.reports.tables import LogLine, log_line
from streaming_moments.storage.log.commits import Commit

_COUNTED = "append"
_WORDS: Mapping[str, str] = MappingProxyType(
    {
        _COUNTED: "documents counted",
        "compact": "segments summed",
        "create": "store created",
        "forget": "documents forgotten",
        "gc": "unused files deleted",
        "grow": "words added",
        "label": "topic named",
        "model": "model saved",
        "stage": "new words chosen",
        "tag": "model tagged",
    }
)


def in_words(operation: str) -> str:
    """Name the operation of a commit in plain words; other operations keep their own names.

    Examples
    --------
    >>> in_words("append"), in_words("rollback")
    ('documents counted', 'rollback')
    """
    return _WORDS.get(operation, operation)


def grouped(commits: Sequence[Commit]) -> list[list[LogLine]]:
    """Group consecutive commits that counted documents under the same lock.

    So a group has the commits of one run of the nightly job, or of one cycle of an accumulator.
    Each of these takes the lock again, and gets a new number, the fence, which commits record. A
    commit without a lock repeats the fence of the previous commit. If no writer of a store ever
    held a lock, the fence is 0, and the commits are not grouped.
    """

    def run_of(commit: Commit) -> tuple[str, int]:
        counted = commit.fence and commit.operation == _COUNTED
        return (_COUNTED, commit.fence) if counted else ("", commit.version)

    return [[*map(log_line, several)] for _, several in groupby(commits, run_of)]
