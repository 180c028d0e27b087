"""
Latent tree of a table
======================

Find hidden states between the columns of a table of categories, and complete missing values.
The fit compares four shapes of trees. ``shape_scores`` has their scores on columns held out.
"""

import matplotlib.pyplot as plt
import numpy as np

from streaming_moments import MomentLatentTree
from streaming_moments.synthetic.tables import latent_tree_table

drawn = latent_tree_table(5000, n_columns=7, n_states=2, n_categories=3, seed=3)
model = MomentLatentTree(n_components=2).fit(drawn.codes)
print(model.model_.described().picture)
print(model.model_.shape, model.model_.shape_scores)

# %%
# Hide a value of each row and complete it. The baseline takes the most frequent category.

rng = np.random.default_rng(0)
hidden = rng.integers(7, size=1000)
rows = drawn.codes[:1000].astype(float)
truth = rows[np.arange(1000), hidden].copy()
rows[np.arange(1000), hidden] = np.nan
completed = model.transform(rows)[np.arange(1000), hidden].astype(float)
frequent = np.array([np.bincount(column).argmax() for column in drawn.codes.T])[hidden]
figure, axis = plt.subplots(figsize=(5, 3))
shares = [np.mean(frequent == truth), np.mean(completed == truth)]
axis.bar(["most frequent category", "latent tree"], shares, color=["0.6", "tab:blue"])
axis.set(ylabel="share of correct values", ylim=(0, 1))
figure.tight_layout()
