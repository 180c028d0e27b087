"""Models: results of fits, such as topics. Each kind of model has a file or a folder."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.models.base import Description as Description
    from streaming_moments.models.base import FitOptions as FitOptions
    from streaming_moments.models.base import Model as Model
    from streaming_moments.models.fit import fit_by as fit_by
    from streaming_moments.models.registry import MODELS as MODELS
    from streaming_moments.models.registry import model_named as model_named
    from streaming_moments.models.rows import InMemory as InMemory
    from streaming_moments.models.rows import Rows as Rows
    from streaming_moments.models.topics import TopicModel as TopicModel
