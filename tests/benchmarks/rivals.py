"""The peers: gensim, scikit-learn and tomotopy, each as its authors would set it, with both cores.

What they are not told (`Prior`) they learn where they can: tomotopy alpha, gensim alpha and eta of
each word; scikit-learn takes 1 / k. None evaluates perplexity on its way.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from methods import CORES, Fitted, Prior
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from streaming_moments import CountBatch

# Chunks give gensim's topics so many updates a pass, where they are not given: of Reuters, 264
# documents, topics are more coherent (NPMI .10 against .02), though they predict less than those of
# one chunk and more iterations do (perplexity 2,282 against 1,680).
_UPDATES = 50
_LEAST_CHUNK, _CHUNK = 32, 2000
# Documents of which gensim's bound on the likelihood is taken.
_BOUND_DOCUMENTS = 1000


@dataclass(frozen=True)
class GensimLda:
    """gensim: online variational Bayes; LdaMulticore where alpha is told, as it learns none.

    In chunks that give many updates or, `whole`, in its default ones of 2,000 with the 400
    iterations of its authors' tutorial.
    """

    passes: int
    whole: bool = False
    seed: int = 1

    @property
    def name(self) -> str:
        chunks = f", chunks of {_CHUNK:,}" if self.whole else ""
        return f"gensim, {_times(self.passes, 'pass')}{chunks}"

    def prepare(self, batch: CountBatch, n_topics: int, prior: Prior) -> Any:
        import gensim.models  # noqa: F401 - imported outside the clock

        # equal (word, count) pairs share one tuple: less memory and less to pickle for gensim
        shared: dict[tuple[int, int], tuple[int, int]] = {}
        pairs = zip(batch.words.tolist(), batch.counts.tolist(), strict=True)
        entries = [shared.setdefault(pair, pair) for pair in pairs]
        starts = batch.indptr.tolist()
        bags = [entries[a:b] for a, b in pairwise(starts)]
        words = {word: str(word) for word in range(batch.n_words)}
        return bags, words, n_topics, prior

    def fit(self, prepared: Any) -> Any:
        from gensim.models import LdaModel, LdaMulticore

        bags, words, k, prior = prepared
        alpha = prior.alpha(k)
        small = min(max(len(bags) // _UPDATES, _LEAST_CHUNK), _CHUNK)
        told: dict[str, Any] = {
            "num_topics": k,
            "id2word": words,
            "chunksize": _CHUNK if self.whole else small,
            "iterations": 400 if self.whole else 50,
            "passes": self.passes,
            "eval_every": None,
            "eta": "auto" if prior.eta is None else prior.eta,
            "random_state": self.seed,
        }
        if alpha is None:
            return LdaModel(bags, alpha="auto", **told)
        # threads of BLAS would fight with its worker processes
        with threadpool_limits(1):
            return LdaMulticore(bags, alpha=[alpha] * k, workers=max(1, CORES - 1), **told)

    def result(self, fitted: Any, prepared: Any) -> Fitted:
        topics = fitted.get_topics().astype(np.float64).T
        alpha = np.asarray(fitted.alpha, dtype=np.float64)
        bound = float(fitted.log_perplexity(prepared[0][:_BOUND_DOCUMENTS]))
        return Fitted(topics / topics.sum(axis=0), alpha, bound)

    def proportions(self, fitted: Any, prepared: Any) -> NDArray[np.float64]:
        return _rows(fitted.inference(prepared[0])[0])


@dataclass(frozen=True)
class SklearnLda:
    """scikit-learn's LatentDirichletAllocation: batch, its default, or online in batches of 128."""

    iterations: int
    learning: str = "batch"
    seed: int = 1

    @property
    def name(self) -> str:
        what = "pass" if self.learning == "online" else "iteration"
        return f"scikit-learn {self.learning}, {_times(self.iterations, what)}"

    def prepare(self, batch: CountBatch, n_topics: int, prior: Prior) -> Any:
        import sklearn.decomposition  # noqa: F401 - imported outside the clock

        return batch.to_csr(), n_topics, prior

    def fit(self, prepared: Any) -> Any:
        from joblib.externals.loky import get_reusable_executor
        from sklearn.decomposition import LatentDirichletAllocation

        matrix, k, prior = prepared
        model = LatentDirichletAllocation(
            k,
            doc_topic_prior=prior.alpha(k),
            # it knows no vector: the mean
            topic_word_prior=None if prior.eta is None else float(prior.eta.mean()),
            learning_method=self.learning,
            max_iter=self.iterations,
            n_jobs=CORES,
            random_state=self.seed,
        )
        model.fit(matrix)
        # its worker processes would stay, and their memory not be accounted for
        get_reusable_executor().shutdown(wait=True)
        return model

    def result(self, fitted: Any, prepared: Any) -> Fitted:
        topics = fitted.components_.T
        alpha = np.full(topics.shape[1], fitted.doc_topic_prior_)
        return Fitted(topics / topics.sum(axis=0), alpha, -float(fitted.bound_))

    def proportions(self, fitted: Any, prepared: Any) -> NDArray[np.float64]:
        return np.asarray(fitted.transform(prepared[0]))


@dataclass(frozen=True)
class TomotopyLda:
    """tomotopy's LDAModel: collapsed Gibbs sampling in C++ threads."""

    iterations: int
    seed: int = 1

    @property
    def name(self) -> str:
        return f"tomotopy, {_times(self.iterations, 'iteration')}"

    def prepare(self, batch: CountBatch, n_topics: int, prior: Prior) -> Any:
        import tomotopy

        alpha = prior.alpha(n_topics)
        if alpha is None:
            model = tomotopy.LDAModel(k=n_topics, seed=self.seed)
        else:
            model = tomotopy.LDAModel(k=n_topics, alpha=alpha, seed=self.seed)
            # the truth needs no optimising
            model.optim_interval = 0
        names = [str(word) for word in range(batch.n_words)]
        words = np.array(names, dtype=object)
        for start, stop in pairwise(batch.indptr.tolist()):
            model.add_doc(words[np.repeat(batch.words[start:stop], batch.counts[start:stop])])
        if prior.eta is not None:
            seen = set(np.unique(batch.words).tolist())
            for word in seen:
                model.set_word_prior(names[word], [float(prior.eta[word])] * n_topics)
        return model, batch

    def fit(self, prepared: Any) -> Any:
        model, _ = prepared
        model.train(self.iterations, workers=CORES)
        return model

    def result(self, fitted: Any, prepared: Any) -> Fitted:
        used = np.array([int(word) for word in fitted.used_vocabs])
        topics = np.zeros((prepared[1].n_words, fitted.k))
        for topic in range(fitted.k):
            topics[used, topic] = fitted.get_topic_word_dist(topic)
        alpha = np.broadcast_to(np.asarray(fitted.alpha, dtype=np.float64), (fitted.k,))
        return Fitted(topics / topics.sum(axis=0), alpha.copy(), float(fitted.ll_per_word))

    def proportions(self, fitted: Any, prepared: Any) -> NDArray[np.float64]:
        found = np.full((prepared[1].documents, fitted.k), 1 / fitted.k)
        # it keeps no document without a word
        found[np.flatnonzero(prepared[1].lengths)] = [doc.get_topic_dist() for doc in fitted.docs]
        return found


def _rows(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each row of sum 1; a row of nothing is even."""
    sums = values.sum(axis=1, keepdims=True)
    return np.where(sums > 0, values / np.where(sums > 0, sums, 1.0), 1 / values.shape[1])


def _times(number: int, what: str) -> str:
    plural = {"pass": "passes", "iteration": "iterations"}
    return f"{number:,} {what if number == 1 else plural[what]}"
