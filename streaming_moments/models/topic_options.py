"""TopicOptions: what a fit of topics is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streaming_moments.decompositions.forms import form_of
from streaming_moments.errors import InvalidInput
from streaming_moments.models.alpha0 import AUTO
from streaming_moments.models.base import FitOptions, option
from streaming_moments.models.refinement import ROUNDS, require_rounds

ROWS = ("third", "mean")
ALPHAS = ("given", "auto")


def _require_rows(rows: str) -> None:
    if rows not in ROWS:
        raise InvalidInput(f'rows are "{rows}"; choose {", ".join(ROWS)}')


def _require_alpha(alpha: str) -> None:
    if alpha not in ALPHAS:
        raise InvalidInput(f'alpha is "{alpha}"; choose {", ".join(ALPHAS)}')


def _require_alpha0(alpha0: float | str) -> None:
    if alpha0 != AUTO:
        form_of(float(alpha0))


@dataclass(frozen=True, kw_only=True)
class TopicOptions(FitOptions):
    """What a fit of topics is told."""

    alpha0: float | Literal["auto"] = option(
        "0: one topic a document; else LDA; auto: by pairs held out.",
        AUTO,
        _require_alpha0,
        auto=("auto",),
        found=AUTO,
    )
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
        auto=("auto",),
    )
    alpha: str = option(
        "Alpha that documents are read with: alpha0, or the sum under which pairs held out are "
        "likeliest.",
        "given",
        _require_alpha,
        choices=ALPHAS,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha == "auto" and not self.alpha0:
            raise InvalidInput(
                "a model of one topic a document has no alpha to find; leave out alpha auto, or "
                "fit with an alpha0 above 0"
            )

    @property
    def summary(self) -> str:
        """What a log says of the fit."""
        how = "" if self.rows == "third" else f", {self.rows} rows"
        rounds = "" if self.refine == ROUNDS else f", refined {self.refine} rounds"
        read = "" if self.alpha == "given" else f", alpha {self.alpha}"
        alpha0 = self.alpha0 if self.alpha0 == AUTO else f"{self.alpha0:g}"
        return f"{super().summary}, alpha0 {alpha0}{how}{rounds}{read}"

    @property
    def label(self) -> str:
        """What a model is called after."""
        how = "" if self.rows == "third" else f"-{self.rows}"
        rounds = "" if self.refine == ROUNDS else f"-r{self.refine}"
        read = "" if self.alpha == "given" else f"-{self.alpha}"
        alpha0 = "" if self.alpha0 == AUTO else f"-a{self.alpha0:g}"
        return f"k{self.topics}{alpha0}-{self.method}{how}{rounds}{read}"
