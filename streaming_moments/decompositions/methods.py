"""Methods that decompose moments into topics or components, by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

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
OwnRotation: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]


class Decomposition(Protocol):
    """Method that computes the columns of a mixture from its moments.

    Its input from the statistics of a store is the whitened k x k x k tensor, or the `GapEvidence`
    of all rows if `needs_slices` is True. The method holds at most `copies` copies of the tensor in
    memory at the same time.
    """

    @property
    def name(self) -> str: ...
    @property
    def copies(self) -> int: ...
    @property
    def needs_slices(self) -> bool: ...
    def of_moments(self, moments: Moments, k: int, rng: np.random.Generator) -> Recovered:
        """Decompose moments given as arrays into k columns."""

    def directions(self, seen: Any, spectrum: Spectrum, rng: np.random.Generator) -> Directions:
        """Return the topics in whitened coordinates; `seen` is the tensor or the `GapEvidence`."""


@dataclass(frozen=True)
class Svtd:
    """Singular value based tensor decomposition, by rotation "joint" or "feature" of `svtd`."""

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
        # Slices along the first index of the tensor are weighted by W = U L^-1/2. Multiply them by
        # the roots of L, so that they are weighted by U, as `by_joint_diagonalization` expects.
        turned = np.sqrt(spectrum)[:, None, None] * seen
        return Directions(by_joint_diagonalization(turned), None)


@dataclass(frozen=True)
class OfTensor:
    """Decomposition by a function `solve`, which returns the components of the whitened tensor."""

    name: str
    solve: Callable[[WhitenedMoments, np.random.Generator], Components]
    copies: int = 8
    needs_slices: bool = False

    def of_moments(self, moments: Moments, k: int, rng: np.random.Generator) -> Recovered:
        whitened, W = whiten_moments(moments, k)
        found = self.solve(whitened, rng)
        # `back` = U L^1/2, the pseudo-inverse of W', maps whitened columns back to words
        back = W * whitened.spectrum
        shares = (found.vectors.T @ (W.T @ moments.M1)) ** 2
        return recover(back @ found.vectors * found.values, shares)

    def directions(self, seen: Any, spectrum: Spectrum, rng: np.random.Generator) -> Directions:
        found = self.solve(WhitenedMoments(seen, np.eye(spectrum.size), spectrum), rng)
        return Directions(found.vectors, found.values)


# `copies` bounds how many copies of the tensor a method holds in memory. In measurements, least
# squares holds 34, because it runs its 10 restarts together. The other methods hold 2 to 5.
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
def decompose(
    moments: Moments, k: int, method: str | OwnRotation = "joint", seed: int = 0
) -> Recovered:
    """Decompose moments into the columns and weights of a mixture of k states.

    `method` names one of these methods, or is a function of your own:

    - "joint": SVTD (singular value based tensor decomposition). Finds the rotation O that
      diagonalises k sums of slices of the whitened third moment at once. The slices are weighted by
      the eigenvectors of M2.
    - "feature": SVTD that takes O from a single slice: the one whose singular values are farthest
      apart (Ruffini et al. 2018, Remark 7). Needs a slice whose k singular values are distinct.
    - "power": tensor power method with deflation (Anandkumar, Ge et al. 2014).
    - "svd": Excess Correlation Analysis (Anandkumar, Foster et al. 2012). Needs k distinct
      eigenvalues of the tensor contracted along one direction, which depends on the seed.
    - "eigen": eigenvectors of an observable operator (Anandkumar, Hsu, Kakade 2012). Needs real,
      distinct eigenvalues of the tensor contracted along such a direction.
    - "als": alternating least squares on the whitened tensor (Sharan and Valiant 2017).

    SVTD computes row i of the columns from slice i of the third moment. On given moments, "joint"
    then takes the mean of the columns and their projection on the range of M2. The other methods
    convert components (v_j, lambda_j) of the whitened tensor to columns by
    `m_j = lambda_j (W')^+ v_j`. The weights of all methods are `(v_j . W' M1)^2`, scaled to sum 1.

    Parameters
    ----------
    moments : Moments
        Moments of a mixture; `dirichlet_moments` converts those of LDA. All methods but "eigen"
        average them over the orders of their indices.
    k : int
        Number of latent states.
    method : str or callable
        A name of `METHODS`, or a function. The function takes the (k, k, k) whitened tensor, which
        is the sum of `w_j^-1/2 o_j^(x)3`. It returns the (k, k) rotation with the columns o_j.
    seed : int
        Seed of the random directions and starts. The same moments and seed give the same columns.

    Returns
    -------
    Recovered
        Columns with positive sums, ordered by decreasing weight.

    Raises
    ------
    NotIdentifiable
        M2 has fewer than k positive eigenvalues, or the method cannot separate the k states.
    InvalidInput
        The method is unknown, k is below 1, or the seed is negative. Or the function returned an
        array of another shape, or without full rank.

    Warns
    -----
    UserWarning
        The columns that a function returned explain less than half of the share of the tensor that
        "joint" explains.

    Examples
    --------
    >>> M, w = np.array([[0.7, 0.1], [0.2, 0.2], [0.1, 0.7]]), np.array([0.6, 0.4])
    >>> moments = Moments.of_mixture(M, w)
    >>> [np.allclose(decompose(moments, 2, method).topics, M) for method in METHODS]
    [True, True, True, True, True, True]
    """
    chosen = decomposition_called(method, seed)
    return chosen.of_moments(moments, k, generator_of(seed))


def decomposition_called(method: str | OwnRotation, seed: int = 0) -> Decomposition:
    """Return the decomposition with the given name, or one that calls a function of the user.

    Raises the errors of `decompose`.
    """
    if callable(method):
        return OfTensor(getattr(method, "__name__", "own"), partial(_along_own, method))
    if method not in DECOMPOSITIONS:
        raise InvalidInput(f'method is "{method}"; choose {", ".join(METHODS)}')
    if seed < 0:
        raise InvalidInput(f"the seed is {seed}; it must be at least 0")
    return DECOMPOSITIONS[method]


def _along_own(
    rotation: OwnRotation, moments: WhitenedMoments, rng: np.random.Generator
) -> Components:
    """Call a function of the user with the tensor; return components along its columns."""
    found, k = np.asarray(rotation(moments.tensor), dtype=np.float64), moments.n_topics
    if found.shape != (k, k) or not np.isfinite(found).all() or not found.any(axis=0).all():
        raise InvalidInput(
            f"the function given as method returned an array of shape {found.shape}; return a "
            f"({k}, {k}) array of finite columns that are not 0"
        )
    along = Components.along(moments.tensor, found)
    if (rank := int(np.linalg.matrix_rank(along.vectors))) < k:
        raise InvalidInput(
            f"the function given as method returned a matrix of rank {rank}; return {k} linearly "
            "independent columns"
        )
    tensor = moments.symmetrized().tensor
    own, joint = (
        _explained(tensor, one) for one in (along.vectors, by_joint_diagonalization(tensor))
    )
    if own < joint / 2:
        warnings.warn(
            f"the columns that the function given as method returned explain {own:.0%} of the "
            f'whitened tensor, but those of "joint" explain {joint:.0%}; check the function',
            stacklevel=2,
        )
    return along


def _explained(tensor: NDArray[np.float64], unit: NDArray[np.float64]) -> float:
    """Return the share of a tensor's squared norm in the span of `v_j^(x)3` of unit columns v_j."""
    along = Components.along(tensor, unit).values
    fitted = np.linalg.lstsq((unit.T @ unit) ** 3, along, rcond=None)[0]
    return float(along @ fitted / (tensor**2).sum())
