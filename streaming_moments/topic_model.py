"""TopicModel: what a refit gives, and how documents are read with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from streaming_moments import kernels
from streaming_moments.counts import CountBatch
from streaming_moments.errors import ForeignStatistics, InvalidInput, short

_ARRAYS = (
    "topics",
    "weights",
    "raw_topics",
    "word_probabilities",
    "spectrum",
    "exact_spectrum",
    "umass",
    "npmi",
)
_STORED_METHOD = "rotation"  # what stores have called it from the first


@dataclass(frozen=True, eq=False)
class TopicModel:
    """Topics of a single-topic model (`alpha0 = 0`) or of latent Dirichlet allocation.

    A fit orders topics by falling weight, so the same statistics give the same numbers;
    `matching.numbered_like` gives them the numbers of an earlier model instead.

    Parameters
    ----------
    topics : (n, k) float64
        Columns on the simplex: probability of each word in each topic.
    weights : (k,) float64
        omega, share of each topic, sums to 1.
    alpha0 : float
        Sum of the Dirichlet parameters; 0 is the single-topic model.
    raw_topics : (n, k) float64
        Topics as they were estimated, before the projection on the simplex.
    word_probabilities : (n,) float64
        M1.
    spectrum, exact_spectrum : (k,) float64
        Eigenvalues of the second moment through the basis, and its own, falling.
    umass, npmi : (k,) float64
        Coherence of each topic; NaN where it was not computed.
    method : str
        Name of the decomposition: "joint", "feature", "power", "svd", "eigen" or "als"; "given"
        for topics given as arrays.
    documents : int
        Documents it was fitted on.
    vocabulary, basis : str
        Fingerprints.
    since, until : str, optional
        First and last day of the documents, ISO 8601, where it was fitted on a window of time.
    half_life : float, optional
        Days after which documents counted half: its statistics were sums of floats, not integers.

    Examples
    --------
    >>> half = np.array([[0.5, 0.0], [0.5, 0.0], [0.0, 1.0]])
    >>> model = TopicModel.from_topics(half, np.array([0.6, 0.4]))
    >>> model.assign(CountBatch.from_csr([[2, 1, 0], [0, 0, 3]]))
    array([0, 1])
    """

    topics: NDArray[np.float64]
    weights: NDArray[np.float64]
    alpha0: float
    raw_topics: NDArray[np.float64]
    word_probabilities: NDArray[np.float64]
    spectrum: NDArray[np.float64]
    exact_spectrum: NDArray[np.float64]
    umass: NDArray[np.float64]
    npmi: NDArray[np.float64]
    method: str
    documents: int
    vocabulary: str = ""
    basis: str = ""
    since: str | None = None
    until: str | None = None
    half_life: float | None = None

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            getattr(self, name).setflags(write=False)

    @classmethod
    def from_topics(
        cls, topics: NDArray[np.float64], weights: NDArray[np.float64], alpha0: float = 0.0
    ) -> TopicModel:
        """A model of known (n, k) topics and (k,) weights, such as a synthetic truth."""
        nothing = np.full(weights.size, np.nan)
        return cls(
            topics.copy(),
            weights.copy(),
            alpha0,
            topics.copy(),
            topics @ weights,
            nothing,
            nothing,
            nothing,
            nothing,
            "given",
            0,
        )

    @property
    def n_words(self) -> int:
        """Number of words n."""
        return int(self.topics.shape[0])

    @property
    def n_topics(self) -> int:
        """Number of topics k."""
        return int(self.topics.shape[1])

    @property
    def alpha(self) -> NDArray[np.float64]:
        """(k,) Dirichlet parameters, `alpha0 * weights`; zeros for the single-topic model."""
        return self.alpha0 * self.weights

    @property
    def captured(self) -> float:
        """Smallest share of an eigenvalue that the basis sees; near 1 is good."""
        return float((self.spectrum / self.exact_spectrum).min())

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The arrays by name, as a store keeps them."""
        return {name: getattr(self, name) for name in _ARRAYS}

    def attributes(self) -> dict[str, object]:
        """The scalars by name, as a store keeps them."""
        names = ("alpha0", "method", "documents", "vocabulary", "basis")
        window = ("since", "until", "half_life")
        given = [name for name in window if getattr(self, name) is not None]
        return {
            _STORED_METHOD if name == "method" else name: getattr(self, name)
            for name in (*names, *given)
        }

    @classmethod
    def from_parts(
        cls, arrays: dict[str, NDArray[np.float64]], attributes: dict[str, object]
    ) -> TopicModel:
        """The model of `arrays()` and `attributes()`.

        Raises
        ------
        InvalidInput
            A part is missing: names it.
        """
        missing = [name for name in _ARRAYS if name not in arrays]
        missing += [
            name for name in ("alpha0", _STORED_METHOD, "documents") if name not in attributes
        ]
        if missing:
            raise InvalidInput(f"the stored model lacks {', '.join(missing)}; refit it")
        days = {name: attributes.get(name) for name in ("since", "until")}
        half_life = attributes.get("half_life")
        return cls(
            **{name: None if day is None else str(day) for name, day in days.items()},
            half_life=None if half_life is None else float(str(half_life)),
            topics=arrays["topics"],
            weights=arrays["weights"],
            alpha0=float(str(attributes["alpha0"])),
            raw_topics=arrays["raw_topics"],
            word_probabilities=arrays["word_probabilities"],
            spectrum=arrays["spectrum"],
            exact_spectrum=arrays["exact_spectrum"],
            umass=arrays["umass"],
            npmi=arrays["npmi"],
            method=str(attributes[_STORED_METHOD]),
            documents=int(str(attributes["documents"])),
            vocabulary=str(attributes.get("vocabulary", "")),
            basis=str(attributes.get("basis", "")),
        )

    def with_coherence(self, umass: NDArray[np.float64], npmi: NDArray[np.float64]) -> TopicModel:
        """The model with the (k,) coherences of its topics."""
        return replace(self, umass=umass.copy(), npmi=npmi.copy())

    def reordered(self, order: NDArray[np.int64]) -> TopicModel:
        """The model with topic `order[j]` as topic j.

        Raises
        ------
        InvalidInput
            `order` does not name each topic once.
        """
        if sorted(order.tolist()) != list(range(self.n_topics)):
            raise InvalidInput(
                f"{order.tolist()} does not name each of {self.n_topics} topics once; "
                "give a permutation"
            )
        return replace(
            self,
            topics=np.ascontiguousarray(self.topics[:, order]),
            weights=self.weights[order],
            raw_topics=np.ascontiguousarray(self.raw_topics[:, order]),
            umass=self.umass[order],
            npmi=self.npmi[order],
        )

    def assign(self, batch: CountBatch, smoothing: float = 1e-3) -> NDArray[np.int64]:
        """Most probable topic of each document: `argmax_j omega_j prod_i m_ij^x_i` (Remark 1).

        Parameters
        ----------
        batch : CountBatch
            (documents, n) counts on the model's vocabulary.
        smoothing : float
            Share of M1 mixed into each topic, so that no single word rules a topic out.

        Returns
        -------
        (documents,) int64
            Topics; an empty document gets the one of largest weight.

        Raises
        ------
        ForeignStatistics
            The batch counts another vocabulary.
        """
        return np.asarray(self._log_posterior(batch, smoothing).argmax(axis=1), dtype=np.int64)

    def transform(
        self,
        batch: CountBatch,
        method: Literal["fixed-point", "gibbs"] = "fixed-point",
        seed: int | None = None,
        iterations: int = 100,
        smoothing: float = 1e-3,
    ) -> NDArray[np.float64]:
        """Topic proportions of each document.

        For `alpha0 = 0` the posterior probability of each topic. Else, for LDA: "fixed-point"
        iterates `theta_j <- (alpha_j + sum_i x_i theta_j m_ij / (theta . m_i)) / (alpha0 + c)`,
        which is expectation maximisation of a concave function, so the limit does not depend on
        the start; "gibbs" averages the collapsed Gibbs sampler of Remark 4 over the second half
        of its iterations.

        Parameters
        ----------
        batch : CountBatch
            (documents, n) counts on the model's vocabulary.
        method : {"fixed-point", "gibbs"}
            For LDA.
        seed : int, optional
            Needed by "gibbs".
        iterations : int
            At most so many of the fixed point, exactly so many of the sampler.
        smoothing : float
            Share of M1 mixed into each topic.

        Returns
        -------
        (documents, k) float64
            Rows on the simplex; an empty document gets the weights.

        Raises
        ------
        ForeignStatistics
            The batch counts another vocabulary.
        InvalidInput
            An unknown method, "gibbs" without a seed or with fewer than 2 iterations.
        """
        if not self.alpha0:
            log_posterior = self._log_posterior(batch, smoothing)
            posterior = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
            return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))
        self._require_words(batch)
        topics = self._smoothed(smoothing)
        if method == "fixed-point":
            proportions = np.empty((batch.documents, self.n_topics))
            kernels.proportions(
                batch.indptr,
                batch.words,
                batch.counts,
                topics,
                self.weights,
                self.alpha0,
                iterations,
                proportions,
            )
            return proportions
        if method != "gibbs":
            raise InvalidInput(f'method is "{method}"; choose "fixed-point" or "gibbs"')
        if seed is None or seed < 0 or iterations < 2:
            raise InvalidInput("the Gibbs sampler needs a seed >= 0 and at least 2 iterations")
        return _gibbs(batch, topics, self.alpha, np.random.default_rng(seed), iterations)

    def _require_words(self, batch: CountBatch) -> None:
        if (batch.n_words, batch.vocabulary) != (self.n_words, self.vocabulary):
            raise ForeignStatistics(
                f"the model is of vocabulary {short(self.vocabulary)} ({self.n_words} words), "
                f"the documents count {short(batch.vocabulary)} ({batch.n_words} words); "
                "count them with the model's vocabulary"
            )

    def _smoothed(self, smoothing: float) -> NDArray[np.float64]:
        if not 0 < smoothing < 1:
            raise InvalidInput(f"smoothing is {smoothing}; it must be between 0 and 1")
        # a word that never occurred has M1 = 0: the floor keeps its logarithm finite
        mean = np.maximum(self.word_probabilities, 1e-12)
        return (1 - smoothing) * self.topics + smoothing * mean[:, None]

    def _log_posterior(self, batch: CountBatch, smoothing: float) -> NDArray[np.float64]:
        self._require_words(batch)
        with np.errstate(divide="ignore"):
            prior = np.log(self.weights)
        likelihood = batch.to_csr() @ np.log(self._smoothed(smoothing))
        return np.asarray(prior + likelihood, dtype=np.float64)


def _gibbs(
    batch: CountBatch,
    topics: NDArray[np.float64],
    alpha: NDArray[np.float64],
    rng: np.random.Generator,
    iterations: int,
) -> NDArray[np.float64]:
    """Collapsed Gibbs sampling with fixed topics, vectorised over documents.

    `P(z = j | rest) ~ m_wj (alpha_j + tokens of the document in j)`: documents are independent
    given the topics, so the t-th tokens of all documents are drawn at once.
    """
    order = np.argsort(-batch.lengths, kind="stable")
    lengths = batch.lengths[order]
    k, longest = topics.shape[1], int(lengths[0]) if lengths.size else 0
    # Documents are longest first, so those that have a t-th token are a prefix; the t-th tokens
    # of all lie together, after the (t-1)-th: as many cells as tokens, however long one may be.
    active = np.searchsorted(-lengths, -np.arange(longest), side="left")
    starts = np.concatenate([[0], np.cumsum(active)])
    tokens = np.empty(starts[-1], dtype=np.int32)
    for place, document in enumerate(order):
        entries = slice(int(batch.indptr[document]), int(batch.indptr[document + 1]))
        words = np.repeat(batch.words[entries], batch.counts[entries])
        tokens[starts[: words.size] + place] = words
    state = np.zeros(tokens.size, dtype=np.int32)
    counts = np.zeros((lengths.size, k))
    total = np.zeros((lengths.size, k))
    for iteration in range(iterations + 1):
        for t in range(longest):
            rows = np.arange(active[t])
            cells = slice(int(starts[t]), int(starts[t + 1]))
            if iteration:  # the first sweep places the tokens one after another
                counts[rows, state[cells]] -= 1
            chances = np.cumsum(topics[tokens[cells]] * (alpha + counts[: rows.size]), axis=1)
            draws = rng.random(rows.size) * chances[:, -1]
            state[cells] = np.minimum((chances <= draws[:, None]).sum(axis=1), k - 1)
            counts[rows, state[cells]] += 1
        if iteration > iterations // 2:
            total += (alpha + counts) / (alpha.sum() + lengths)[:, None]
    proportions = np.empty_like(total)
    proportions[order] = total / total.sum(axis=1, keepdims=True)
    return proportions
