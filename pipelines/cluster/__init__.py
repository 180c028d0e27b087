"""Where jobs run: the cluster, its tasks and memory, and the rows of a store as tasks take them."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.pipelines.cluster.memory import plan_reading, plan_update
    from streaming_moments.pipelines.cluster.progress import Silent, StepProgress
    from streaming_moments.pipelines.cluster.refit_memory import plan_refit
    from streaming_moments.pipelines.cluster.run import Run
    from streaming_moments.pipelines.cluster.tasks import run_bounded

__all__ = [
    "Run",
    "Silent",
    "StepProgress",
    "plan_reading",
    "plan_refit",
    "plan_update",
    "run_bounded",
]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "memory": ("plan_reading", "plan_update"),
            "progress": ("Silent", "StepProgress"),
            "refit_memory": ("plan_refit",),
            "run": ("Run",),
            "tasks": ("run_bounded",),
        },
    )
