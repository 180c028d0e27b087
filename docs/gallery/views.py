"""
Hidden states behind three views
================================

Each record has three views, such as a title, an author and a year. The views are independent
given a hidden state. Fit the states and read them from one view alone.
"""

import matplotlib.pyplot as plt
import numpy as np

from streaming_moments import MomentViews
from streaming_moments.synthetic import view_records

drawn = view_records(5000, sizes=(12, 10, 8), k=3, mean=4.0, seed=1)
views = [view.to_csr() for view in drawn.batch.views]
model = MomentViews(n_components=3).fit(views)

# %%
# Count how often each true state gets each fitted state, with all views and with the first only.

figure, axes = plt.subplots(1, 2, figsize=(7, 3.2))
for axis, known in zip(axes, (views, [views[0], None, None]), strict=True):
    states = model.predict(known)
    table = np.zeros((3, 3), dtype=int)
    np.add.at(table, (drawn.states, states), 1)
    axis.imshow(table, cmap="Blues")
    for (row, column), number in np.ndenumerate(table):
        axis.text(column, row, number, ha="center", va="center")
    title = "all views" if known is views else "first view only"
    axis.set(title=title, xlabel="fitted state", ylabel="true state", xticks=range(3))
    axis.set_yticks(range(3))
figure.tight_layout()
