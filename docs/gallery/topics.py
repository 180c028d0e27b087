"""
Topics with a known truth
=========================

How near is a fit to the truth? Real text has no true topics, so this example draws documents from
known topics, fits topics to their word counts, and compares both.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from streaming_moments import MomentTopics
from streaming_moments.synthetic import lda_corpus, topic_error

corpus = lda_corpus(n_documents=4000, n_words=300, n_topics=4, alpha0=1.0, mean_length=80)
model = MomentTopics(n_components=4).fit(corpus.batch.to_csr())
print("mean L1 error of a topic:", round(topic_error(model.components_.T, corpus.topics), 3))

# %%
# Match each true topic with the nearest fitted topic, then plot the probabilities of all words.

distances = np.abs(corpus.topics.T[:, None] - model.components_[None]).sum(axis=2)
matched = linear_sum_assignment(distances)[1]
figure, axes = plt.subplots(1, 4, figsize=(10, 2.8), sharex=True, sharey=True)
for topic, (axis, found) in enumerate(zip(axes, matched, strict=True)):
    axis.loglog(corpus.topics[:, topic], model.components_[found], ".", markersize=3)
    axis.plot([1e-5, 1], [1e-5, 1], color="grey", linewidth=1)
    axis.set(title=f"topic {topic}", xlabel="true probability", xlim=(1e-5, 1), ylim=(1e-5, 1))
axes[0].set_ylabel("fitted probability")
figure.tight_layout()

# %%
# The model estimates the error of each topic from two halves of the documents.

print("estimated error of each topic:", model.model_.topic_bars.round(3))

# %%
# How many topics are there? `"auto"` tries several numbers. Draw their scores. The band shows the
# noise.

found = MomentTopics(n_components="auto").fit(corpus.batch.to_csr())
found.number_search_.plot()
