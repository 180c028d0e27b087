"""The peers: gensim, scikit-learn and tomotopy, each with sensible settings and both cores.

Told the truth (planted corpora), all take alpha = alpha0 / k and the mean of the true eta.
Otherwise gensim and scikit-learn take their default 1/k for both, tomotopy its default 0.1 and
0.01 and optimises alpha as it does by default. No peer evaluates perplexity on its way.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from methods import CORES, Fitted, Prior
from threadpoolctl import threadpool_limits

from streaming_moments import CountBatch

_SEED = 1
# gensim's default of 2000 took as long and erred more (0.83 against 0.57, 20,000 documents)
_CHUNK_DOCUMENTS = 500


@dataclass(frozen=True)
class GensimLda:
    """gensim's LdaMulticore: online variational Bayes, in chunks of 500 documents."""

    passes: int

    @property
    def name(self) -> str:
        return f"gensim LdaMulticore, {_passes(self.passes)}"

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
        from gensim.models import LdaMulticore

        bags, words, k, prior = prepared
        # a worker process for each core: threads of BLAS in each would fight with the others
        with threadpool_limits(1):
            return LdaMulticore(
                bags,
                num_topics=k,
                id2word=words,
                workers=CORES,
                chunksize=_CHUNK_DOCUMENTS,
                passes=self.passes,
                eval_every=None,
                alpha=[prior.alpha0 / k] * k if prior.known else "symmetric",
                eta=prior.eta if prior.known else None,
                random_state=_SEED,
            )

    def result(self, fitted: Any, n_words: int) -> Fitted:
        topics = fitted.get_topics().astype(np.float64).T
        return Fitted(topics / topics.sum(axis=0), np.asarray(fitted.alpha, dtype=np.float64))


@dataclass(frozen=True)
class SklearnLda:
    """scikit-learn's LatentDirichletAllocation, online, in its default batches of 128."""

    passes: int

    @property
    def name(self) -> str:
        return f"scikit-learn online, {_passes(self.passes)}"

    def prepare(self, batch: CountBatch, n_topics: int, prior: Prior) -> Any:
        import sklearn.decomposition  # noqa: F401 - imported outside the clock

        return batch.to_csr(), n_topics, prior

    def fit(self, prepared: Any) -> Any:
        from joblib.externals.loky import get_reusable_executor
        from sklearn.decomposition import LatentDirichletAllocation

        matrix, k, prior = prepared
        model = LatentDirichletAllocation(
            k,
            doc_topic_prior=prior.alpha0 / k if prior.known else None,
            topic_word_prior=prior.eta if prior.known else None,
            learning_method="online",
            max_iter=self.passes,
            n_jobs=CORES,
            random_state=_SEED,
        )
        model.fit(matrix)
        # its worker processes would stay, and their memory not be accounted for
        get_reusable_executor().shutdown(wait=True)
        return model

    def result(self, fitted: Any, n_words: int) -> Fitted:
        topics = fitted.components_.T
        k = topics.shape[1]
        return Fitted(topics / topics.sum(axis=0), np.full(k, fitted.doc_topic_prior_))


@dataclass(frozen=True)
class TomotopyLda:
    """tomotopy's LDAModel: collapsed Gibbs sampling in C++ threads."""

    iterations: int

    @property
    def name(self) -> str:
        return f"tomotopy, {self.iterations} iterations"

    def prepare(self, batch: CountBatch, n_topics: int, prior: Prior) -> Any:
        import tomotopy

        if prior.known:
            model = tomotopy.LDAModel(
                k=n_topics, alpha=prior.alpha0 / n_topics, eta=prior.eta, seed=_SEED
            )
            # the truth needs no optimising
            model.optim_interval = 0
        else:
            model = tomotopy.LDAModel(k=n_topics, seed=_SEED)
        words = np.array([str(word) for word in range(batch.n_words)], dtype=object)
        starts = batch.indptr.tolist()
        for start, stop in pairwise(starts):
            if stop > start:
                model.add_doc(words[np.repeat(batch.words[start:stop], batch.counts[start:stop])])
        return model

    def fit(self, prepared: Any) -> Any:
        prepared.train(self.iterations, workers=CORES)
        return prepared

    def result(self, fitted: Any, n_words: int) -> Fitted:
        used = np.array([int(word) for word in fitted.used_vocabs])
        topics = np.zeros((n_words, fitted.k))
        for topic in range(fitted.k):
            topics[used, topic] = fitted.get_topic_word_dist(topic)
        alpha = np.broadcast_to(np.asarray(fitted.alpha, dtype=np.float64), (fitted.k,))
        return Fitted(topics / topics.sum(axis=0), alpha.copy())


def _passes(number: int) -> str:
    return f"{number} pass" + ("es" if number > 1 else "")
