"""Before a run: what it will cost, from a trial on this machine."""

from streaming_moments.pipelines.planning.cost import ClusterCost, cluster_cost
from streaming_moments.pipelines.planning.job import Job
from streaming_moments.pipelines.planning.step_costs import StepCosts
from streaming_moments.pipelines.planning.trial import Reading, try_out

__all__ = ["ClusterCost", "Job", "Reading", "StepCosts", "cluster_cost", "try_out"]
