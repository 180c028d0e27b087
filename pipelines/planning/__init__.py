"""Plan: estimate the cost of a run before it starts, from a trial on this machine."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.pipelines.planning.cost import ClusterCost as ClusterCost
    from streaming_moments.pipelines.planning.cost import cluster_cost as cluster_cost
    from streaming_moments.pipelines.planning.job import Job as Job
    from streaming_moments.pipelines.planning.merging import MergeCost as MergeCost
    from streaming_moments.pipelines.planning.merging import merge_cost as merge_cost
    from streaming_moments.pipelines.planning.step_costs import StepCosts as StepCosts
    from streaming_moments.pipelines.planning.trial import Reading as Reading
    from streaming_moments.pipelines.planning.trial import try_out as try_out
