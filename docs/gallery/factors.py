"""
Independent factors
===================

Rows are mixed from independent skewed factors. Fit the mixing columns and recover the factors.
"""

import matplotlib.pyplot as plt
import numpy as np

from streaming_moments import MomentFactors
from streaming_moments.synthetic.mixtures import amari_distance, factor_rows

drawn = factor_rows(5000, dimensions=6, factors=3, noise=0.05, seed=1)
model = MomentFactors(n_components=3).fit(drawn.rows)
distance = amari_distance(drawn.mixing, model.components_.T)
print("Amari distance to the true mixing:", round(distance, 4))

# %%
# Plot each true factor against the fitted factor that correlates most with it.

found = model.transform(drawn.rows)
correlations = np.corrcoef(drawn.factors.T, found.T)[:3, 3:]
figure, axes = plt.subplots(1, 3, figsize=(9, 3))
for factor, axis in enumerate(axes):
    nearest = np.abs(correlations[factor]).argmax()
    axis.plot(drawn.factors[:, factor], found[:, nearest], ".", markersize=2, alpha=0.4)
    axis.set(title=f"correlation {correlations[factor, nearest]:.2f}", xlabel="true factor")
axes[0].set_ylabel("fitted factor")
figure.tight_layout()
