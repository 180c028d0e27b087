"""TopicOptions: what a fit of topics is told."""

from __future__ import annotations

from dataclasses import dataclass

from streaming_moments.decompositions.forms import form_of
from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import FitOptions, option
from streaming_moments.models.refinement import ROUNDS, require_rounds

ROWS = ("third", "mean")


def _require_rows(rows: str) -> None:
    if rows not in ROWS:
        raise InvalidInput(f'rows are "{rows}"; choose {", ".join(ROWS)}')


@dataclass(frozen=True, kw_only=True)
class TopicOptions(FitOptions):
    """What a fit of topics is told."""

    alpha0: float = option("0: one topic a document; else LDA.", 0.1, form_of)
    rows: str = option(
        "Words of topics by the third moment alone, or by the mean with the second.",
        "third",
        _require_rows,
        choices=ROWS,
    )
    refine: int = option(
        "Rounds that make topics likelier by the stored pairs of words; 0: none; auto: by pairs "
        "held out.",
        ROUNDS,
        require_rounds,
        auto=True,
    )

    @property
    def said(self) -> str:
        """What a log says of the fit."""
        how = "" if self.rows == "third" else f", {self.rows} rows"
        rounds = "" if self.refine == ROUNDS else f", refined {self.refine} rounds"
        return f"{super().said}, alpha0 {self.alpha0:g}{how}{rounds}"

    @property
    def label(self) -> str:
        """What a model is called after."""
        how = "" if self.rows == "third" else f"-{self.rows}"
        rounds = "" if self.refine == ROUNDS else f"-r{self.refine}"
        return f"k{self.topics}-a{self.alpha0:g}-{self.method}{how}{rounds}"
