"""Drift: change of a corpus relative to the state, vocabulary and basis of a store."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Drift:
    """Four measures of whether vocabulary, basis and model of a store still fit the data.

    Parameters
    ----------
    captured : float or None
        Smallest share of a leading eigenvalue of the second moment that the basis captures. If it
        is well below 1, the basis misses a topic. None if not computed.
    outside_share : float or None
        Share of tokens outside the vocabulary; None without tokens.
    effective_documents : float
        Effective number of documents in the third moment, `1 / W3`. If it is below a few hundred,
        some long documents dominate this moment.
    pair_distance : float or None
        Total variation, 0 to 1, between the distributions of word pairs in two states of a store;
        None if these cannot be compared.
    """

    captured: float | None
    outside_share: float | None
    effective_documents: float
    pair_distance: float | None


_BOUNDED = {  # for each measure: its name, and whether its bound is a minimum
    "captured": ("captured spectrum", True),
    "outside_share": ("share outside the vocabulary", False),
    "effective_documents": ("effective number of documents", True),
    "pair_distance": ("distance of pair distributions", False),
}


@dataclass(frozen=True)
class DriftBounds:
    """Bounds on the measures of drift; None sets no bound.

    Parameters
    ----------
    captured : float, optional
        Smallest share of an eigenvalue that the basis has to capture.
    outside_share : float, optional
        Largest share of tokens outside the vocabulary.
    effective_documents : float, optional
        Smallest effective number of documents.
    pair_distance : float, optional
        Largest total variation between the distributions of word pairs in two states.
    """

    captured: float | None = None
    outside_share: float | None = None
    effective_documents: float | None = None
    pair_distance: float | None = None

    def passed_by(self, drift: Drift) -> tuple[str, ...]:
        """Describe the measures that are beyond their bounds; an unknown measure never is.

        Examples
        --------
        >>> DriftBounds(captured=0.5).passed_by(Drift(0.25, None, 900.0, None))
        ('captured spectrum 0.25 is below 0.5',)
        """
        phrases = []
        for key, (name, least) in _BOUNDED.items():
            value, bound = getattr(drift, key), getattr(self, key)
            if value is None or bound is None or (value >= bound if least else value <= bound):
                continue
            phrases.append(f"{name} {value:.3g} is {'below' if least else 'above'} {bound:g}")
        return tuple(phrases)


def outside_share(tokens: int, outside: int) -> float | None:
    """Return the share of tokens outside the vocabulary; None without tokens.

    Examples
    --------
    >>> outside_share(30, 10), outside_share(0, 0)
    (0.25, None)
    """
    total = tokens + outside
    return outside / total if total else None
