"""The default tokeniser: the definition of a word, and the kernels that find words."""

from streaming_moments.lazy_imports import attach

attach(__name__, modules=("token_kernels",))
