"""What became of each mutant, kept so that a run that was stopped goes on."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from covering import Ran
from mutation import Mutant


def digest(*texts: str) -> str:
    """A name of some texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Outcomes:
    """Files of a folder: a line for each mutant, a file for the coverage of each file of tests."""

    folder: Path

    def known(self) -> dict[str, str]:
        """Outcomes by the key of each mutant: killed, survived or unrun."""
        place = self.folder / "outcomes.jsonl"
        if not place.exists():
            return {}
        lines = [json.loads(line) for line in place.read_text().splitlines()]
        return {line["key"]: line["outcome"] for line in lines}

    def add(self, key: str, mutant: Mutant, outcome: str, seconds: float) -> None:
        """Keep an outcome."""
        told = {"key": key, "outcome": outcome, "mutant": str(mutant), "seconds": round(seconds, 1)}
        with (self.folder / "outcomes.jsonl").open("a") as file:
            file.write(json.dumps(told) + "\n")

    def coverage(self, test: str, source: str, targets: Mapping[str, str]) -> list[Ran] | None:
        """Tests of a file as they ran over some sources; None where they have to run.

        A target that changed and that none of them executed does not matter.
        """
        place = self.folder / f"coverage-{digest(test)}.json"
        if not place.exists():
            return None
        told = json.loads(place.read_text())
        ran = [Ran(**one) for one in told["tests"]]
        executed = {path for one in ran for path in one.lines}
        same = told["source"] == digest(source) and all(
            path in told["targets"]
            and (path not in executed or told["targets"][path] == digest(target))
            for path, target in targets.items()
        )
        return ran if same else None

    def keep_coverage(
        self, test: str, source: str, targets: Mapping[str, str], ran: Iterable[Ran]
    ) -> None:
        """Keep what the tests of a file execute."""
        told = {
            "tests": [asdict(one) for one in ran],
            "source": digest(source),
            "targets": {path: digest(target) for path, target in targets.items()},
        }
        (self.folder / f"coverage-{digest(test)}.json").write_text(json.dumps(told))


def key_of(mutant: Mutant, tests: Iterable[Ran], root: Path) -> str:
    """A name of a mutant and of the sources of its tests."""
    files = sorted({ran.name.partition("::")[0] for ran in tests})
    return digest(mutant.path, mutant.source, *((root / file).read_text() for file in files))
