"""Remedies in Python: options of commands in messages become arguments and calls.

Most errors are raised by code that commands and Python share. Their messages name options, as
commands print them unchanged. Functions that users call from Python rewrite them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

Say: TypeAlias = Callable[[str], str]

_ELSEWHERE = " of the command line"
_OPTION = r"(?P<option>--[a-z][a-z-]*[a-z])"
# `streaming-moments update --unique`, `create --language none`, `streaming-moments refit`
_CALL = re.compile(
    rf"`(?:streaming-moments )?(?P<command>[a-z][a-z-]*) {_OPTION}(?: (?P<value>[^`]*))?`"
    r"|`streaming-moments (?P<alone>[a-z][a-z-]*)`"
)
# --core, create --kind NAME, --bad-rows skip: with the values that messages name
_BARE = re.compile(
    rf"(?<![\w`-])(?:(?P<command>create|update|refit|transform) )?{_OPTION}"
    r"(?: (?P<value>pooled|even|skip|refuse|edges|vectors|none)\b| (?:[A-Z]+|[a-z](?:,[a-z])+)\b)?"
)


@dataclass(frozen=True)
class Remedies:
    """How Python names options and commands.

    options : what stands for an option, by the option alone or after its command, such as
        `create --kind`; there `{}` is its value
    commands : what stands for a command, by its name
    phrases : what stands for a phrase, by its regular expression; replaced first
    """

    options: Mapping[str, str]
    commands: Mapping[str, str] = field(default_factory=dict)
    phrases: Mapping[str, str] = field(default_factory=dict)

    def said(self, text: str) -> str:
        """Rewrite a message; one that is rewritten already stays as it is.

        Options that only commands have say so.

        Examples
        --------
        >>> IN_MEMORY.said("ask for at most 3, or create a store with a larger --max-topics")
        'ask for at most 3, or give a larger max_components'
        >>> IN_MEMORY.said("split it, or raise --max-document-bytes")
        'split it, or raise --max-document-bytes of the command line'
        """
        for phrase, instead in self.phrases.items():
            text = re.sub(phrase, instead, text)
        return _BARE.sub(self._of_option, _CALL.sub(self._of_call, text))

    def _of_call(self, found: re.Match[str]) -> str:
        if found["option"] is None:
            instead = self.commands.get(found["alone"])
        else:
            instead = self._instead(found["command"], found["option"], found["value"])
        return found[0] if instead is None else f"`{instead}`"

    def _of_option(self, found: re.Match[str]) -> str:
        option, value = found["option"], found["value"]
        instead = self.options.get(option)
        if found["command"] or value is not None:
            instead = self._instead(found["command"] or "create", option, value) or instead
        if instead is not None:
            return instead
        # an option within a command that stays, or one that was rewritten before
        within = found.string[: found.start()].count("`") % 2
        done = found.string[found.end() :].startswith(_ELSEWHERE)
        return found[0] if within or done else f"{found[0]}{_ELSEWHERE}"

    def _instead(self, command: str, option: str, value: str | None) -> str | None:
        instead = self.options.get(f"{command} {option}")
        word = value is not None and value.isalpha() and value.islower()
        return None if instead is None else instead.format(f'"{value}"' if word else "...")


def rewritten(error: Exception, say: Say) -> None:
    """Rewrite the message of an error in place, also where it stands in fields of its own."""
    error.args = tuple(say(one) if isinstance(one, str) else one for one in error.args)
    reason = getattr(error, "reason", None)
    if isinstance(reason, str):
        error.reason = say(reason)  # type: ignore[attr-defined]


_PHRASES = MappingProxyType(
    {
        "a larger --max-topics, or --sketch-columns": "more --sketch-columns",
        "create (?:the|a) store with ": "give ",
        "run `streaming-moments update` first": "give more",
        r"all (\d+) rows of the pilot are equal; give .*": r"all \1 rows are equal; give others",
        "^covariance is ": "covariance_type is ",
        r" \(`create --passage-words`\)": "",
        "none of the pilot's (.*) holds two vocabulary words; give .*": (
            r"none of the \1 has two words that are counted; give documents with more words"
        ),
    }
)
# of estimators, which have no store
IN_MEMORY = Remedies(
    options=MappingProxyType(
        {
            "--max-topics": "max_components",
            "--sketch-columns": "sketch_columns",
            "--length-weights": "length_weights",
            "create --length-weights": "length_weights={}",
            "--passes": "polish",
        }
    ),
    phrases=_PHRASES,
)
# of fits of statistics
OF_STATISTICS = Remedies(
    options=MappingProxyType(
        {
            "--max-topics": "max_topics of Basis.from_pilot",
            "--sketch-columns": "columns of the sketch",
            "--length-weights": "length_weights of Basis.from_pilot",
            "create --length-weights": "length_weights={} of Basis.from_pilot",
            "--passes": "passes",
        }
    ),
    phrases=_PHRASES,
)
