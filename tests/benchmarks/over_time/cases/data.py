"""Records drawn by NumPy alone, so that all commits are timed on the same ones."""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def tokens(rng: np.random.Generator, counts: NDArray[np.int64], topics: Floats) -> sp.csr_array:
    """Draw (records, words) counts: so many tokens of each record from each of (k, n) topics."""
    records, words = [], []
    for number, topic in zip(counts.T, topics, strict=True):
        records.append(np.repeat(np.arange(len(counts)), number))
        found = np.searchsorted(np.cumsum(topic), rng.random(records[-1].size))
        words.append(np.minimum(found, topic.size - 1))
    places = np.concatenate(records), np.concatenate(words)
    ones = np.ones(places[0].size, dtype=np.int64)
    return sp.coo_array((ones, places), shape=(len(counts), topics.shape[1])).tocsr()


@cache
def documents(number: int, words: int = 10_000, k: int = 20, length: int = 150) -> sp.csr_array:
    """Draw documents of latent Dirichlet allocation over Zipf words, alpha0 1."""
    rng = np.random.default_rng(0)
    zipf = 1 / np.arange(1, words + 1)
    topics = rng.dirichlet(200 * zipf / zipf.sum() + 1e-6, k)
    shares = rng.dirichlet(np.full(k, 1 / k), number)
    return tokens(rng, rng.multinomial(rng.poisson(length, number), shares), topics)


def texts(number: int, words: int = 2_000, k: int = 5) -> list[str]:
    """Spell such documents, each word by letters of its own; one in seven begins with an accent."""
    letters = "abcdefghijklmnopqrst"
    spelled = (
        "".join(letters[word // 20**place % 20] for place in (2, 1, 0)) for word in range(words)
    )
    names = [("É" if word % 7 == 0 else "u") + name for word, name in enumerate(spelled)]
    rows = documents(number, words, k, 80)
    pairs = [slice(*rows.indptr[row : row + 2]) for row in range(number)]
    return [
        " ".join(np.repeat([names[word] for word in rows.indices[pair]], rows.data[pair]))
        for pair in pairs
    ]


@cache
def views(number: int, k: int = 4) -> list[sp.csr_array]:
    """Draw records of three views, of 30, 40 and 50 words, independent given one of k states."""
    rng = np.random.default_rng(1)
    states = np.eye(k, dtype=np.int64)[rng.integers(k, size=number)]
    return [
        tokens(rng, states * rng.poisson(5, (number, 1)), rng.dirichlet(np.full(n, 0.2), k))
        for n in (30, 40, 50)
    ]


@cache
def sequences(number: int, length: int = 100, symbols: int = 50, k: int = 5) -> NDArray[np.int64]:
    """Draw (number, length) symbols of a hidden Markov model that stays with probability 0.8."""
    rng = np.random.default_rng(2)
    emissions = np.cumsum(rng.dirichlet(np.full(symbols, 0.1), k), axis=1)
    states = rng.integers(k, size=(number, length))
    for place in range(1, length):
        stays = rng.random(number) < 0.8
        states[stays, place] = states[stays, place - 1]
    drawn = (rng.random((number, length, 1)) > emissions[states]).sum(axis=2)
    return np.minimum(drawn, symbols - 1)


@cache
def clusters(number: int, dimensions: int = 64, k: int = 10) -> Floats:
    """Draw rows of k Gaussians of variance 1, eight from the origin."""
    rng = np.random.default_rng(3)
    means = rng.normal(size=(k, dimensions))
    means *= 8 / np.linalg.norm(means, axis=1, keepdims=True)
    return means[rng.integers(k, size=number)] + rng.normal(size=(number, dimensions))


@cache
def mixed_factors(number: int, dimensions: int = 20, k: int = 8) -> Floats:
    """Draw rows of k skewed factors in normal noise."""
    rng = np.random.default_rng(4)
    hidden = rng.exponential(size=(number, k)) - 1
    noise = 0.1 * rng.normal(size=(number, dimensions))
    return hidden @ rng.normal(size=(k, dimensions)) + noise


@cache
def graph(nodes: int, k: int = 4) -> sp.csr_array:
    """Draw a graph of k groups: an edge within one is six times as likely as between two."""
    rng = np.random.default_rng(5)
    groups = rng.integers(k, size=nodes)
    chances = np.where(groups[:, None] == groups, 0.12, 0.02)
    upper = np.triu(rng.random((nodes, nodes)) < chances, 1)
    return sp.csr_array((upper | upper.T).astype(np.int64))
