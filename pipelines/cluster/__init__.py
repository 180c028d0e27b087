"""Where jobs run: the cluster, its tasks, its memory, and the tasks that read rows of a store."""

from streaming_moments.storage.old_exports import old_exports

old_exports(
    __name__,
    memory="plan_reading plan_update",
    progress="Silent StepProgress",
    refit_memory="plan_refit",
    run="Run",
    tasks="run_bounded",
)
