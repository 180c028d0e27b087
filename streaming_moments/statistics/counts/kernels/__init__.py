"""Numba kernels of the counts: serial, without the interpreter lock, cached on disk."""
