"""Decompositions of moments given as arrays; a method is a file here and a line in `methods`."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.decompositions.forms import Dirichlet, Form, Mixture, form_of
    from streaming_moments.decompositions.methods import METHODS, decompose
    from streaming_moments.decompositions.moments import Moments, dirichlet_moments
    from streaming_moments.decompositions.svtd import Recovered, recover
    from streaming_moments.decompositions.whitened import (
        Components,
        WhitenedMoments,
        whiten_moments,
    )

__all__ = [
    "METHODS",
    "Components",
    "Dirichlet",
    "Form",
    "Mixture",
    "Moments",
    "Recovered",
    "WhitenedMoments",
    "decompose",
    "dirichlet_moments",
    "form_of",
    "recover",
    "whiten_moments",
]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "forms": ("Dirichlet", "Form", "Mixture", "form_of"),
            "methods": ("METHODS", "decompose"),
            "moments": ("Moments", "dirichlet_moments"),
            "svtd": ("Recovered", "recover"),
            "whitened": ("Components", "WhitenedMoments", "whiten_moments"),
        },
    )
