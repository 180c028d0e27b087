"""Run jobs on a Dask cluster: plan their memory, run tasks, and read the rows of stores."""

from streaming_moments.storage.old_exports import old_exports

old_exports(
    __name__,
    memory="plan_reading plan_update",
    progress="Silent StepProgress",
    refit_memory="plan_refit",
    run="Run",
    tasks="run_bounded",
)
