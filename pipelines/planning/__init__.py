"""Before a run: what it will cost, from a trial on this machine."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.pipelines.planning.cost import ClusterCost, cluster_cost
    from streaming_moments.pipelines.planning.job import Job
    from streaming_moments.pipelines.planning.step_costs import StepCosts
    from streaming_moments.pipelines.planning.trial import Reading, try_out

__all__ = ["ClusterCost", "Job", "Reading", "StepCosts", "cluster_cost", "try_out"]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "cost": ("ClusterCost", "cluster_cost"),
            "job": ("Job",),
            "step_costs": ("StepCosts",),
            "trial": ("Reading", "try_out"),
        },
    )
