"""TopicOptions: options of a fit of topics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streaming_moments.decompositions.forms import form_of
from streaming_moments.errors import InvalidInput
from streaming_moments.models.alpha0 import AUTO
from streaming_moments.models.base import FitOptions, option, takes_n_topics
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


@takes_n_topics
@dataclass(frozen=True, kw_only=True)
class TopicOptions(FitOptions):
    """Options of a fit of topics."""

    alpha0: float | Literal["auto"] = option(
        "Sum of the Dirichlet parameters. 0: each document has one topic; above 0: LDA; auto: "
        "the value with the best held-out log-likelihood.",
        AUTO,
        _require_alpha0,
        auto=("auto",),
        found=AUTO,
    )
    rows: str = option(
        "Moments from which topics are computed: the third, or the mean of the second and third.",
        "third",
        _require_rows,
        choices=ROWS,
    )
    refine: int = option(
        "Rounds of refinement, which raise the likelihood of the stored word pairs. 0: none; "
        "auto: the number with the best held-out log-likelihood.",
        ROUNDS,
        require_rounds,
        auto=("auto",),
    )
    alpha: str = option(
        "Dirichlet parameters with which the topics of documents are inferred. given: those of "
        "alpha0; auto: those with the best held-out log-likelihood.",
        "given",
        _require_alpha,
        choices=ALPHAS,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.alpha == "auto" and not self.alpha0:
            raise InvalidInput(
                "a model with one topic per document has no alpha to estimate; leave out alpha "
                "auto, or fit with an alpha0 above 0"
            )

    @property
    def summary(self) -> str:
        """Summary of the fit for logs."""
        how = "" if self.rows == "third" else f", {self.rows} rows"
        rounds = "" if self.refine == ROUNDS else f", refined in {self.refine} rounds"
        read = "" if self.alpha == "given" else f", alpha {self.alpha}"
        alpha0 = self.alpha0 if self.alpha0 == AUTO else f"{self.alpha0:g}"
        return f"{super().summary}, alpha0 {alpha0}{how}{rounds}{read}"

    @property
    def label(self) -> str:
        """Label of these options, which becomes part of the name of a model."""
        how = "" if self.rows == "third" else f"-{self.rows}"
        rounds = "" if self.refine == ROUNDS else f"-r{self.refine}"
        read = "" if self.alpha == "given" else f"-{self.alpha}"
        alpha0 = "" if self.alpha0 == AUTO else f"-a{self.alpha0:g}"
        return f"k{self.topics}{alpha0}-{self.method}{how}{rounds}{read}"
