"""Decompositions of second and third moments, given as arrays, into topics or components.

Each method of decomposition has a file of its own, and a line in `methods`.
"""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.decompositions.forms import Dirichlet as Dirichlet
    from streaming_moments.decompositions.forms import Form as Form
    from streaming_moments.decompositions.forms import Mixture as Mixture
    from streaming_moments.decompositions.forms import form_of as form_of
    from streaming_moments.decompositions.methods import METHODS as METHODS
    from streaming_moments.decompositions.methods import decompose as decompose
    from streaming_moments.decompositions.moments import Moments as Moments
    from streaming_moments.decompositions.moments import dirichlet_moments as dirichlet_moments
    from streaming_moments.decompositions.svtd import Recovered as Recovered
    from streaming_moments.decompositions.svtd import recover as recover
    from streaming_moments.decompositions.whitened import Components as Components
    from streaming_moments.decompositions.whitened import WhitenedMoments as WhitenedMoments
    from streaming_moments.decompositions.whitened import whiten_moments as whiten_moments
