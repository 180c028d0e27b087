"""Drift: how far a corpus has moved away from the state, the words and the basis of a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Drift:
    """Four numbers that say whether vocabulary, basis and model still fit.

    Parameters
    ----------
    captured : float or None
        Smallest share of a leading eigenvalue of the second moment that the basis sees; well
        below 1 it misses a topic. None where it was not computed.
    outside_share : float or None
        Share of tokens outside the vocabulary; None where no tokens are known.
    effective_documents : float
        `1 / W3`: below some hundreds a few long documents rule the third moment.
    pair_distance : float or None
        Total variation between the pair distributions of two states, 0 to 1; None where they
        cannot be compared.
    """

    captured: float | None
    outside_share: float | None
    effective_documents: float
    pair_distance: float | None


@dataclass(frozen=True)
class DriftBounds:
    """From where drift is too much; None bounds nothing.

    Parameters
    ----------
    captured : float, optional
        Least share of an eigenvalue.
    outside_share : float, optional
        Largest share of tokens outside the vocabulary.
    effective_documents : float, optional
        Least number.
    pair_distance : float, optional
        Largest total variation.
    """

    captured: float | None = None
    outside_share: float | None = None
    effective_documents: float | None = None
    pair_distance: float | None = None

    def passed_by(self, drift: Drift) -> tuple[str, ...]:
        """What of a drift is out of bounds, one phrase each; what is not known is within.

        Examples
        --------
        >>> DriftBounds(captured=0.5).passed_by(Drift(0.25, None, 900.0, None))
        ('captured spectrum 0.25 is below 0.5',)
        """
        compared: Sequence[tuple[str, float | None, float | None, bool]] = (
            ("captured spectrum", drift.captured, self.captured, True),
            ("share outside the vocabulary", drift.outside_share, self.outside_share, False),
            (
                "effective number of documents",
                drift.effective_documents,
                self.effective_documents,
                True,
            ),
            ("distance of pair distributions", drift.pair_distance, self.pair_distance, False),
        )
        phrases = []
        for name, value, bound, least in compared:
            if value is None or bound is None or (value >= bound if least else value <= bound):
                continue
            phrases.append(f"{name} {value:.3g} is {'below' if least else 'above'} {bound:g}")
        return tuple(phrases)


def outside_share(tokens: int, outside: int) -> float | None:
    """Share of tokens outside the vocabulary; None without tokens.

    Examples
    --------
    >>> outside_share(30, 10), outside_share(0, 0)
    (0.25, None)
    """
    total = tokens + outside
    return outside / total if total else None
