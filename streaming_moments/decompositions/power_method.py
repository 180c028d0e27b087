"""The tensor power method, which finds and subtracts one component after the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.whitened import Components, WhitenedMoments
from streaming_moments.errors import InvalidInput, NotIdentifiable


def by_power_method(
    whitened: WhitenedMoments, rng: np.random.Generator, restarts: int = 25, iterations: int = 20
) -> Components:
    """Find components by the robust tensor power method.

    The method is Algorithm 1 of Anandkumar, Ge, Hsu, Kakade, Telgarsky 2014.

    T is the whitened tensor. For each of k components, iterate `v <- T(I, v, v) / |T(I, v, v)|`
    from random unit vectors v. Then select the v with the largest `T(v, v, v)`, and iterate again
    from it. Last, deflate the tensor, that is, subtract the component:
    `T <- T - lambda v (x) v (x) v` with `lambda = T(v, v, v)`.

    The restarts of a component run together: an iteration is one product of the (k, k^2) tensor
    with (k^2, restarts). The tensor is symmetrised first: replaced by its mean over all orders of
    the indices. Components are returned in the order in which they are found. For exact moments,
    those with the largest values come first.

    Raises NotIdentifiable if the deflated tensor is not positive before k components are found.
    The error has the number of components found.

    Examples
    --------
    >>> tensor = np.zeros((2, 2, 2))
    >>> tensor[0, 0, 0], tensor[1, 1, 1] = 2.0, 3.0
    >>> whitened = WhitenedMoments(tensor, np.eye(2), np.ones(2))
    >>> by_power_method(whitened, np.random.default_rng(0)).values.round(4)
    array([3., 2.])
    """
    if restarts < 1 or iterations < 1:
        raise InvalidInput(
            f"restarts is {restarts} and iterations is {iterations}; give at least 1 of each"
        )
    k = whitened.n_topics
    tensor = whitened.symmetrized().tensor
    scale = np.linalg.norm(tensor)
    vectors, values = np.empty((k, k)), np.empty(k)
    for component in range(k):
        starts = rng.standard_normal((k, restarts))
        found = _iterate(tensor, starts / np.linalg.norm(starts, axis=0), iterations)
        best = int(_cubes(tensor, found).argmax())
        v = _iterate(tensor, found[:, [best]], iterations)
        value = float(_cubes(tensor, v)[0])
        # a component of weight w has value w^-1/2 >= 1; tiny values are rounding errors that are
        # left after all components were subtracted
        if not value > scale * np.sqrt(np.finfo(float).eps):
            raise NotIdentifiable(
                f"the power method found {component} of {k} components: the rest of the third "
                'moment is not positive; ask for fewer topics, add documents, or use method "joint"'
            )
        vectors[:, component], values[component] = v[:, 0], value
        square = np.outer(v, v)
        tensor = tensor - value * square[:, :, None] * v[:, 0]
    return Components(vectors, values)


def _contracted(tensor: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (k, r) vectors `T(I, v, v)`, one for each of r columns v."""
    k, columns = v.shape
    squares = (v[:, None, :] * v[None, :, :]).reshape(k * k, columns)
    product: NDArray[np.float64] = tensor.reshape(k, k * k) @ squares
    return product


def _iterate(
    tensor: NDArray[np.float64], v: NDArray[np.float64], iterations: int
) -> NDArray[np.float64]:
    """Apply some power iterations to (k, r) columns; return (k, r) unit columns."""
    for _ in range(iterations):
        turned = _contracted(tensor, v)
        length = np.linalg.norm(turned, axis=0)
        # leave a vector unchanged if the tensor maps it to zero; its value is 0, so it is not
        # chosen
        v = np.where(length > 0, turned / np.where(length > 0, length, 1.0), v)
    return v


def _cubes(tensor: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (r,) values `T(v, v, v)`, one for each of r columns v."""
    cubes: NDArray[np.float64] = (v * _contracted(tensor, v)).sum(axis=0)
    return cubes
