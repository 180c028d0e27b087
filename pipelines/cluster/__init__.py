"""Where jobs run: the cluster, its tasks and memory, and the rows of a store as tasks read them."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.pipelines.cluster.memory import plan_reading as plan_reading
    from streaming_moments.pipelines.cluster.memory import plan_update as plan_update
    from streaming_moments.pipelines.cluster.progress import Silent as Silent
    from streaming_moments.pipelines.cluster.progress import StepProgress as StepProgress
    from streaming_moments.pipelines.cluster.refit_memory import plan_refit as plan_refit
    from streaming_moments.pipelines.cluster.run import Run as Run
    from streaming_moments.pipelines.cluster.tasks import run_bounded as run_bounded
