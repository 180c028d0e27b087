"""Modules of scipy, each loaded at the first access to one of its names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import LazyModule

if TYPE_CHECKING:
    import scipy.cluster.vq as vq
    import scipy.optimize as optimize
    import scipy.sparse as sp
else:
    vq = LazyModule("scipy.cluster.vq")
    optimize = LazyModule("scipy.optimize")
    sp = LazyModule("scipy.sparse")

__all__ = ["optimize", "sp", "vq"]
