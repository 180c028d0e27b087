"""
Hidden Markov model of sequences
================================

Fit a hidden Markov model to sequences of symbols from windows of three symbols.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from streaming_moments import MomentHMM
from streaming_moments.synthetic import markov_sequences

drawn = markov_sequences(300, length=100, n_symbols=12, k=3, seed=2)
sequences = drawn.batch.symbols.reshape(300, 100)
model = MomentHMM(n_components=3, n_features=12).fit(list(sequences))

# %%
# Match the states, then plot the emissions. Dark bars are the truth.

distances = np.abs(drawn.emission.T[:, None] - model.emissionprob_[None]).sum(axis=2)
matched = linear_sum_assignment(distances)[1]
figure, axes = plt.subplots(3, 1, figsize=(7, 5), sharex=True)
for state, (axis, found) in enumerate(zip(axes, matched, strict=True)):
    symbols = np.arange(12)
    axis.bar(symbols - 0.2, drawn.emission[:, state], width=0.4, color="0.3", label="true")
    axis.bar(symbols + 0.2, model.emissionprob_[found], width=0.4, label="fitted")
    axis.set_ylabel(f"state {state}")
axes[0].legend()
axes[-1].set_xlabel("symbol")
figure.tight_layout()

# %%
# The transition matrix has a row for each current state.

print(model.transmat_[np.ix_(matched, matched)].round(2))

# %%
# `decode` returns the most likely states of a sequence (Viterbi).

score, states = model.decode([sequences[0]])
print("log-probability", round(float(score), 1), "states", states[:20])

# %%
# `plot` draws the transition matrix and the most likely symbols of each state.

panels = model.plot(5)
