"""
Mixed communities of a graph
============================

Each node of this graph belongs to several communities. Fit the memberships.
"""

import matplotlib.pyplot as plt
import numpy as np

from streaming_moments import MomentCommunities
from streaming_moments.synthetic.graphs import community_graph, membership_error

graph = community_graph(600, communities=3, inside=0.2, outside=0.03, alpha0=0.5, seed=1)
model = MomentCommunities(n_components=3, alpha0=0.5).fit(graph.batch.to_csr())
error = membership_error(model.memberships_, graph.memberships)
print("mean L1 error of a node:", round(error, 3))

# %%
# Draw each node in a triangle whose corners are the three communities. A node near a corner
# belongs to one community. The colour is the true community with the largest membership.

corners = np.array([[0, 0], [1, 0], [0.5, 3**0.5 / 2]])
places = model.memberships_ @ corners
figure, axis = plt.subplots(figsize=(5, 4.5))
axis.scatter(*places.T, c=graph.memberships.argmax(axis=1), s=12, cmap="viridis", alpha=0.7)
axis.plot(*corners[[0, 1, 2, 0]].T, color="grey", linewidth=1)
axis.set_axis_off()
axis.set_aspect("equal")
