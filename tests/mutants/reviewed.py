"""Mutants that were looked at and change nothing that anyone can see, each with a reason."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mutation import Mutant

FILE = "tests/mutants/equivalent.toml"


@dataclass(frozen=True)
class Equivalent:
    """A change that no test can notice, by what it changes and where."""

    path: str
    within: str
    before: str
    after: str
    reason: str

    def is_of(self, mutant: Mutant) -> bool:
        """Whether a mutant makes the change."""
        made = mutant.path, mutant.within, mutant.before, mutant.after
        return made == (self.path, self.within, self.before, self.after)


def reviewed(project: Path) -> list[Equivalent]:
    """The reviewed changes of a project; none where it keeps no list."""
    place = project / FILE
    if not place.exists():
        return []
    return [Equivalent(**entry) for entry in tomllib.loads(place.read_text())["equivalent"]]


def stale(changes: Sequence[Equivalent], mutants: Sequence[Mutant]) -> list[Equivalent]:
    """Changes that no mutant makes: the source is not what was reviewed."""
    return [change for change in changes if not any(change.is_of(mutant) for mutant in mutants)]
