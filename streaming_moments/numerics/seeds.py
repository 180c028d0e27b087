"""Seeds of random generators."""

from __future__ import annotations

import numpy as np

from streaming_moments.errors import InvalidInput


def require_seed(seed: int) -> None:
    """Refuse an invalid seed."""
    if not 0 <= seed < 1 << 64:
        raise InvalidInput(f"the seed is {seed}; it must be 0 to 2^64 - 1")


def generator_of(seed: int) -> np.random.Generator:
    """Return the random generator of a seed; raise InvalidInput for an invalid seed.

    Examples
    --------
    >>> generator_of(-1)
    Traceback (most recent call last):
        ...
    streaming_moments.errors.InvalidInput: the seed is -1; it must be 0 to 2^64 - 1
    """
    require_seed(seed)
    return np.random.default_rng(seed)
