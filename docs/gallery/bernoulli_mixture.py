"""
Latent classes of sets
======================

Each row is a set of features, such as the items of a user. Fit a mixture of Bernoullis.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from streaming_moments import MomentBernoulliMixture
from streaming_moments.synthetic.sets import feature_sets, probability_error

drawn = feature_sets(4000, n_features=30, components=3, seed=1)
model = MomentBernoulliMixture(n_components="auto", polish="auto").fit(drawn.batch.to_csr())
error = probability_error(model.probabilities_.T, drawn.probabilities)
print(len(model.weights_), "components, root mean square error", round(error, 3))

# %%
# Plot the probability of each feature in each component beside the truth.

truth = drawn.probabilities.T
distances = np.abs(truth[:, None] - model.probabilities_[None]).sum(axis=2)
matched = linear_sum_assignment(distances)[1]
figure, axes = plt.subplots(2, 1, figsize=(8, 3.2), sharex=True)
for axis, values, title in zip(
    axes, (truth, model.probabilities_[matched]), ("true", "fitted"), strict=True
):
    image = axis.imshow(values, aspect="auto", vmin=0, vmax=1, cmap="Blues")
    axis.set(title=title, ylabel="component", yticks=range(3))
axes[-1].set_xlabel("feature")
figure.tight_layout()
figure.colorbar(image, ax=axes, label="probability")
