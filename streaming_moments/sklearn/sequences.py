"""MomentHMM: hidden Markov model of symbols as an estimator, with hmmlearn's attribute names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.models.chains.hidden_markov import HiddenMarkovModel, MarkovOptions
from streaming_moments.models.rows import InMemory
from streaming_moments.plots import Axes, Figure
from streaming_moments.printing.short_repr import shown
from streaming_moments.sklearn.estimator import MomentSampler, RandomSeed, require_records
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.halves import mostly_repeated, row_keys
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.sequences.windows import SymbolBatch
from streaming_moments.statistics.views.sketches import core_of, sketch_of
from streaming_moments.statistics.views.statistics import ViewStatistics

_PILOT = 1 << 20  # number of first windows of symbols from which the sketch is chosen


class MomentHMM(MomentSampler):
    """Hidden Markov model of symbols `0..n_features-1`, from windows of three symbols.

    Parameters
    ----------
    n_components : int, "auto" or "predict"
        Number of states k. "auto" chooses the largest number whose states are all found in both
        halves of the sequences. "predict" chooses the smallest number whose held-out log-likelihood
        of windows is within the noise of the best.
    n_features : int, optional
        Number of different symbols n. By default, the largest symbol of the first sequences plus 1.
    refine : int
        Rounds of expectation maximisation on the counts of windows, for up to 128 symbols.
    polish : int or "auto"
        Number of passes of Baum-Welch over the sequences after the fit. "auto" makes at most 100,
        and stops when all later passes together would change the states by less than a hundredth of
        their error bars. Only `fit` polishes, because `partial_fit` does not have all sequences.
    sketch_columns : int, optional
        Columns of the sketch of the symbols; the default is that of `sketch_of`.
    random_state : int, RandomState or None
        Seed of the random columns of the sketch, and of the random starts of the fit.
    keep_statistics : bool
        Whether a pickle after `fit` includes `statistics_`, so that sequences can be added later;
        after `partial_fit` it always does.
    verbose : int
        1 prints a line for each step of a fit, with its seconds; 0 prints none.

    Attributes
    ----------
    startprob_ : (k,) float64
        Distribution of the first state.
    transmat_ : (k, k) float64
        Transition matrix with a row for each current state.
    emissionprob_ : (k, n) float64
        Distribution of the symbols of each state.
    number_search_ : NumberSearch
        Held-out scores of the numbers of states that were tried, if `n_components` was "auto"
        or "predict".
    statistics_ : ViewStatistics
        Statistics of all sequences.
    model_ : HiddenMarkovModel
        The fitted model.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> flips = np.cumsum(rng.random((50, 40)) < 0.1, axis=1) % 2
    >>> sequences = [2 * row + (rng.random(40) < 0.3) for row in flips]
    >>> model = MomentHMM(n_components=2, n_features=4).fit(sequences)
    >>> model.transmat_.diagonal().round(1)
    array([0.9, 0.9])
    """

    _seen = "sequences"
    # default for pickles of earlier versions, which lack this parameter
    polish: int | Literal["auto"] = 0

    def __init__(
        self,
        n_components: int | Literal["auto", "predict"] = 2,
        n_features: int | None = None,
        *,
        refine: int = 200,
        polish: int | Literal["auto"] = 0,
        sketch_columns: int | None = None,
        random_state: RandomSeed = 0,
        keep_statistics: bool = False,
        verbose: int | bool = 0,
    ) -> None:
        self.n_components = n_components
        self.n_features = n_features
        self.refine = refine
        self.polish = polish
        self.sketch_columns = sketch_columns
        self.random_state = random_state
        self.keep_statistics = keep_statistics
        self.verbose = verbose

    def fit(self, X: Any, y: object = None, lengths: Sequence[int] | None = None) -> Self:
        """Fit the model to sequences.

        Parameters
        ----------
        X : list or series of (t,) integers, or (symbols,) or (symbols, 1) array
            Sequences; or all of them concatenated, with `lengths`. The symbol -1 is unobserved.
        y : object
            Not used. It is refused if its length differs from that of X, because it is then
            probably meant as `lengths`.
        lengths : sequence of int, optional
            Lengths of the sequences in an array; by default the array is one sequence.

        Raises
        ------
        InvalidInput
            A value is not a symbol, or a parameter is out of range.
        NotIdentifiable
            The sequences do not separate the requested number of states.
        """
        return super().fit(_symbols(X, lengths, y))

    def partial_fit(self, X: Any, y: object = None, lengths: Sequence[int] | None = None) -> Self:
        """Add these sequences to all earlier ones, and fit the model to all of them.

        The sequences of the first call determine the alphabet. Parameters and errors are those of
        `fit`.
        """
        return super().partial_fit(_symbols(X, lengths, y))

    def decode(
        self, X: Any, lengths: Sequence[int] | None = None
    ) -> tuple[float, NDArray[np.int32]]:
        """Find the most likely states (Viterbi); return their log probability and the states."""
        check_is_fitted(self, "model_")
        logs, states = self.model_.decode(_symbols(X, lengths))
        return float(logs.sum()), states

    def predict(self, X: Any, lengths: Sequence[int] | None = None) -> NDArray[np.int32]:
        """Return the most likely state at each symbol, (symbols,)."""
        return self.decode(X, lengths)[1]

    def predict_proba(self, X: Any, lengths: Sequence[int] | None = None) -> NDArray[np.float64]:
        """Return the probability of each state at each symbol, (symbols, k)."""
        check_is_fitted(self, "model_")
        return self.model_.posterior(_symbols(X, lengths))

    def score(self, X: Any, y: object = None, lengths: Sequence[int] | None = None) -> float:
        """Return the log probability of all sequences together."""
        check_is_fitted(self, "model_")
        return float(self.model_.log_likelihoods(_symbols(X, lengths, y)).sum())

    def bic(self, X: Any, lengths: Sequence[int] | None = None) -> float:
        """Return the Bayesian information criterion, with symbols as samples; lower is better."""
        check_is_fitted(self, "model_")
        symbols = _symbols(X, lengths).symbols.size
        free = self.model_.n_parameters * np.log(max(symbols, 1))
        return float(free - 2 * self.score(X, lengths=lengths))

    def aic(self, X: Any, lengths: Sequence[int] | None = None) -> float:
        """Return Akaike's information criterion of sequences; lower is better."""
        found = self.score(X, lengths=lengths)
        return 2 * self.model_.n_parameters - 2 * found

    def perplexity(self, X: Any, lengths: Sequence[int] | None = None) -> float:
        """Return the perplexity per symbol; lower is better."""
        check_is_fitted(self, "model_")
        return self.model_.perplexity(_symbols(X, lengths))

    def plot(
        self,
        number: int = 8,
        names: Sequence[str] | None = None,
        figure: Figure | None = None,
    ) -> list[Axes]:
        """Draw the transition matrix, and a panel for each state with its most likely symbols.

        Parameters and errors are those of `HiddenMarkovModel.plot`.
        """
        check_is_fitted(self, "model_")
        return self.model_.plot(number, names, figure)

    def _records(self, X: SymbolBatch, first: bool = False) -> SymbolBatch:
        return X

    def _begin(self, records: SymbolBatch) -> None:
        if not records.symbols.size:
            raise InvalidInput("there are no sequences; give some")
        n = self.n_features
        n = int(records.symbols.max(initial=0)) + 1 if n is None else n
        if n < 1:
            raise InvalidInput(f"n_features is {n}; it must be at least 1")
        _require_known(records, n)
        self._repeated = mostly_repeated(row_keys(records.offsets, records.symbols))
        words = Vocabulary(tuple(map(str, range(n))), core_of(n))
        sketch = sketch_of(_bigrams(records, n), words, self.sketch_columns, self._seed)
        self._foundation = SequencesFoundation(words, sketch)

    def _counted(self, records: SymbolBatch, first: int) -> ViewStatistics:
        _require_known(records, self._foundation.rows)
        odd = self._halves(first, records.documents)
        records = records if odd is None else replace(records, odd=odd)
        return self._foundation.of_sequences(records)

    def _fitted(self, statistics: ViewStatistics) -> Self:
        told: dict[str, Any] = {"refine": self.refine, "seed": self._seed}
        if isinstance(self.n_components, str) and statistics.totals.n_documents < 2:
            raise InvalidInput(
                f'n_components is "{self.n_components}", which compares two halves of the '
                "sequences, but there is one sequence; cut it into several, or give a number"
            )
        if not statistics.totals.triples:
            raise NotIdentifiable(
                "no sequence has three observed symbols in a row, from which states are fitted "
                "(the symbol -1 means unobserved); give longer sequences, and number the symbols "
                "from 0"
            )
        k = self._number(statistics, HiddenMarkovModel, **told)
        options = MarkovOptions(topics=k, **told)
        self.statistics_ = statistics
        return self._shown(HiddenMarkovModel.fit(InMemory((statistics,)), options))

    def _shown(self, model: HiddenMarkovModel) -> Self:
        self.model_ = model
        self.startprob_ = self.model_.start.copy()
        self.transmat_ = np.ascontiguousarray(self.model_.transition.T)
        self.emissionprob_ = np.ascontiguousarray(self.model_.emission.T)
        return self

    def _require_parameters(self) -> None:
        for name in ("n_components", "refine", "n_features"):
            value = getattr(self, name)
            if (name == "n_features" and value is None) or value in self._finds:
                continue
            if isinstance(value, bool) or not isinstance(value, Integral):
                raise InvalidInput(f"{name} is {shown(value)}; give a whole number")
        super()._require_parameters()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        return cast("Tags", tags)


def _require_known(batch: SymbolBatch, n: int) -> None:
    if batch.symbols.max(initial=-1) >= n:
        raise InvalidInput(
            f"symbol {batch.symbols.max()} is beyond n_features {n}; give symbols from 0 to {n - 1}"
        )


def _symbols(X: Any, lengths: Sequence[int] | None, y: Any = None) -> SymbolBatch:
    """Convert sequences in any of the accepted forms to a batch of symbols."""
    require_records(X)
    if lengths is None and y is not None and hasattr(X, "__len__") and np.size(y) != len(X):
        raise InvalidInput(
            f"y has {np.size(y)} values, but X has {len(X)}; y is not used, so give the lengths of "
            "sequences as lengths=..."
        )
    if lengths is None and getattr(X, "ndim", 0) == 1 and X.dtype == object:
        X = list(X)  # an array of sequences, such as a column of a frame
    if lengths is None and isinstance(X, list | tuple):
        given = [np.asarray(one) for one in X] if X and np.ndim(X[0]) else [np.asarray(X)]
        sizes = [one.size for one in given]
        whole = np.concatenate([one.ravel() for one in given]) if given else np.empty(0, int)
    else:
        whole = np.asarray(X)
        whole = whole.ravel() if whole.ndim == 1 or whole.shape[1:] == (1,) else whole
        sizes = [whole.size] if lengths is None else list(lengths)
    if whole.ndim != 1 or sum(sizes) != whole.size or min(sizes, default=0) < 0:
        raise InvalidInput(
            f"X has shape {whole.shape} and lengths that sum to {sum(sizes)}; give a list of "
            "sequences, or one column of symbols and the lengths of its sequences"
        )
    if whole.dtype.kind in "UO" and any(isinstance(one, str) for one in whole[:1]):
        raise InvalidInput(
            f"symbols are strings, such as {str(whole[0])!r}; number them from 0, for example by "
            "pandas.factorize, or count them in a store"
        )
    numbers = whole.dtype.kind in "iubf"
    if whole.size and (whole.dtype.kind not in "iub" or whole.min() < -1):
        least = f", the least {whole.min()}" if numbers else ""
        raise InvalidInput(
            f"symbols are of type {whole.dtype}{least}; give whole numbers from 0, and -1 for "
            "unobserved symbols"
        )
    if whole.size and whole.max() > np.iinfo(np.int32).max:
        raise InvalidInput(f"symbol {whole.max()} is beyond int32; renumber the symbols from 0")
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return SymbolBatch.whole(offsets, whole.astype(np.int32))


def _bigrams(batch: SymbolBatch, n: int) -> Any:
    """Count pairs of adjacent symbols in the first sequences.

    Return (n, 2 n) counts with a row for each symbol. The first n columns count how often each
    symbol comes directly after the symbol of the row, the last n how often directly before.
    """
    import scipy.sparse as sp

    windows = batch.windows[0][:_PILOT]
    ones = np.ones(len(windows))
    pairs = sp.csr_array(sp.coo_array((ones, (windows[:, 0], windows[:, 1])), shape=(n, n)))
    return sp.hstack([pairs, pairs.T], format="csr")
