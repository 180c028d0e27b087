"""
Clusters of vectors
===================

Fit a Gaussian mixture to rows of numbers, such as embeddings, in one pass over the rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from streaming_moments import MomentGaussianMixture
from streaming_moments.synthetic.mixtures import matched_means, mixture_rows

drawn = mixture_rows(4000, dimensions=8, components=3, separation=5.0, seed=1)
model = MomentGaussianMixture(n_components=3).fit(drawn.rows)
distances, matched = matched_means(model.means_, drawn.means)
print("distance of each mean to the truth:", distances.round(3))

# %%
# Project the rows to the plane of the three means. Crosses are the fitted means.

centre = model.means_.mean(axis=0)
plane = np.linalg.svd(model.means_ - centre)[2][:2]
points = (drawn.rows - centre) @ plane.T
means = (model.means_ - centre) @ plane.T
figure, axis = plt.subplots(figsize=(5, 4.5))
axis.scatter(*points.T, c=model.predict(drawn.rows), s=4, cmap="viridis", alpha=0.4)
axis.plot(*means.T, "x", color="black", markersize=12, markeredgewidth=3)
axis.set(xlabel="first direction", ylabel="second direction")
figure.tight_layout()

# %%
# Without a number, the fit tries several. The solid line marks how many are separable.

found = MomentGaussianMixture(n_components="auto").fit(drawn.rows)
found.number_search_.plot()
