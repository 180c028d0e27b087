"""Models: what a fit gives, and how documents are read with it; one file for each model."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.models.base import Description, FitOptions, Model
    from streaming_moments.models.fit import fit_by
    from streaming_moments.models.registry import MODELS, model_named
    from streaming_moments.models.rows import InMemory, Rows
    from streaming_moments.models.topics import TopicModel

__all__ = [
    "MODELS",
    "Description",
    "FitOptions",
    "InMemory",
    "Model",
    "Rows",
    "TopicModel",
    "fit_by",
    "model_named",
]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "base": ("Description", "FitOptions", "Model"),
            "fit": ("fit_by",),
            "registry": ("MODELS", "model_named"),
            "rows": ("InMemory", "Rows"),
            "topics": ("TopicModel",),
        },
        modules=("topic_reading",),
    )
