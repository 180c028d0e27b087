"""Where jobs run: the cluster, its tasks and memory, and the rows of a store as tasks read them."""

from streaming_moments.storage.old_exports import old_exports

old_exports(
    __name__,
    memory="plan_reading plan_update",
    progress="Silent StepProgress",
    refit_memory="plan_refit",
    run="Run",
    tasks="run_bounded",
)
