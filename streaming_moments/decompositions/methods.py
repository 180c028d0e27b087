"""Registry of the decompositions by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streaming_moments.arguments import checked
from streaming_moments.decompositions.evidence import Directions
from streaming_moments.decompositions.least_squares import by_alternating_least_squares
from streaming_moments.decompositions.moments import Moments
from streaming_moments.decompositions.one_direction import by_eigenvectors, by_random_direction
from streaming_moments.decompositions.power_method import by_power_method
from streaming_moments.decompositions.rotation import by_feature_gap, by_joint_diagonalization
from streaming_moments.decompositions.svtd import Recovered, Rotation, recover, svtd
from streaming_moments.decompositions.whitened import Components, WhitenedMoments, whiten_moments
from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.seeds import generator_of

Spectrum = NDArray[np.float64]


class Decomposition(Protocol):
    """Method that computes the columns of a mixture from its moments.

    Its input from statistics is the whitened tensor or, if it `needs_slices`, the `GapEvidence` of
    all rows. `copies` is how many copies of the tensor it holds at once.
    """

    @property
    def name(self) -> str: ...
    @property
    def copies(self) -> int: ...
    @property
    def needs_slices(self) -> bool: ...
    def of_moments(self, moments: Moments, k: int, rng: np.random.Generator) -> Recovered:
        """Decompose given moments into columns."""

    def directions(self, seen: Any, spectrum: Spectrum, rng: np.random.Generator) -> Directions:
        """The topics in whitened coordinates."""


@dataclass(frozen=True)
class Svtd:
    """Singular value based tensor decomposition: "joint" or "feature" of `svtd`."""

    name: Rotation
    copies: int = 8

    @property
    def needs_slices(self) -> bool:
        return self.name == "feature"

    def of_moments(self, moments: Moments, k: int, rng: np.random.Generator) -> Recovered:
        even = moments.symmetrized()
        return svtd(even.M1, even.M2, even.M3, k, self.name)

    def directions(self, seen: Any, spectrum: Spectrum, rng: np.random.Generator) -> Directions:
        if self.needs_slices:
            return Directions(by_feature_gap(seen), None)
        # W = U L^-1/2: scaling the rows of W by the roots of the spectrum gives U
        turned = np.sqrt(spectrum)[:, None, None] * seen
        return Directions(by_joint_diagonalization(turned), None)


@dataclass(frozen=True)
class OfTensor:
    """Decomposition of the whitened tensor: `solve` returns the components of its moments."""

    name: str
    solve: Callable[[WhitenedMoments, np.random.Generator], Components]
    copies: int = 8
    needs_slices: bool = False

    def of_moments(self, moments: Moments, k: int, rng: np.random.Generator) -> Recovered:
        whitened, W = whiten_moments(moments, k)
        found = self.solve(whitened, rng)
        # U L^1/2, the pseudo-inverse of W'
        back = W * whitened.spectrum
        shares = (found.vectors.T @ (W.T @ moments.M1)) ** 2
        return recover(back @ found.vectors * found.values, shares)

    def directions(self, seen: Any, spectrum: Spectrum, rng: np.random.Generator) -> Directions:
        found = self.solve(WhitenedMoments(seen, np.eye(spectrum.size), spectrum), rng)
        return Directions(found.vectors, found.values)


# Copies measured: 2 to 5; 34 for least squares, which runs its 10 restarts together.
_ALL: tuple[Decomposition, ...] = (
    Svtd("joint"),
    Svtd("feature"),
    OfTensor("power", by_power_method),
    OfTensor("svd", by_random_direction),
    OfTensor("eigen", by_eigenvectors),
    OfTensor("als", by_alternating_least_squares, copies=40),
)
DECOMPOSITIONS: Mapping[str, Decomposition] = MappingProxyType({one.name: one for one in _ALL})
METHODS = tuple(DECOMPOSITIONS)


@checked
def decompose(moments: Moments, k: int, method: str = "joint", seed: int = 0) -> Recovered:
    """Decompose given moments by a named method.

    - "joint": SVTD, O by joint diagonalisation of k sums of slices, along the eigenvectors of M2.
    - "feature": SVTD, O from the slice of the widest gap (Ruffini et al. 2018, Remark 7). Needs a
      slice whose k singular values are distinct.
    - "power": tensor power method with deflation (Anandkumar, Ge et al. 2014).
    - "svd": Excess Correlation Analysis (Anandkumar, Foster et al. 2012). Needs k distinct
      eigenvalues in the one direction that the seed draws.
    - "eigen": eigenvectors of an observable operator (Anandkumar, Hsu, Kakade 2012). Needs real,
      distinct eigenvalues in that direction.
    - "als": alternating least squares on the whitened tensor (Sharan and Valiant 2017).

    SVTD reads row i of the columns off slice i of the third moment ("joint" on given moments
    averages this with its projection on the range of M2). The other methods map the components
    (v_j, lambda_j) of the whitened tensor back by `m_j = lambda_j (W')^+ v_j`. All methods give the
    weights `(v_j . W' M1)^2`, scaled to sum 1.

    Parameters
    ----------
    moments : Moments
        In the form of a mixture; `dirichlet_moments` converts those of LDA. All methods but "eigen"
        symmetrise them.
    k : int
        Number of latent states.
    method : str
        A name of `METHODS`.
    seed : int
        Seed of the random directions and starts; the same moments and seed give the same columns.

    Returns
    -------
    Recovered
        Columns of positive sum, by decreasing weight.

    Raises
    ------
    NotIdentifiable
        M2 has fewer than k positive eigenvalues, or the method cannot separate the k states.
    InvalidInput
        An unknown method, k below 1 or a negative seed.

    Examples
    --------
    >>> M, w = np.array([[0.7, 0.1], [0.2, 0.2], [0.1, 0.7]]), np.array([0.6, 0.4])
    >>> moments = Moments.of_mixture(M, w)
    >>> [np.allclose(decompose(moments, 2, method).topics, M) for method in METHODS]
    [True, True, True, True, True, True]
    """
    chosen = decomposition_called(method, seed)
    return chosen.of_moments(moments, k, generator_of(seed))


def decomposition_called(method: str, seed: int = 0) -> Decomposition:
    """The decomposition of a name; raises InvalidInput for an unknown name or a negative seed."""
    if method not in DECOMPOSITIONS:
        raise InvalidInput(f'method is "{method}"; choose {", ".join(METHODS)}')
    if seed < 0:
        raise InvalidInput(f"the seed is {seed}; it must be at least 0")
    return DECOMPOSITIONS[method]
