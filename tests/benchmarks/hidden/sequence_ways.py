"""Hidden Markov models of sequences: ours, hmmlearn, pomegranate."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from hidden.sequences import PlantedSequences, Symbols, TextSymbols, lengths_of
from measure import Clock
from methods import CORES
from ours import OURS
from threadpoolctl import threadpool_limits

from streaming_moments.models.chains.hidden_markov import HiddenMarkovModel, MarkovOptions
from streaming_moments.models.rows import InMemory
from streaming_moments.sklearn import MomentHMM

# What pomegranate is given at once: sequences of one length.
_PIECE = 500


@dataclass(frozen=True)
class OurMarkov:
    """MomentHMM: windows of three, a fit, rounds on their table, and passes over the sequences."""

    refine: int = 200
    columns: int | None = None
    polish: int | str = 0
    seed: None = None

    @property
    def name(self) -> str:
        parts = [f"refine {self.refine}"] if self.refine != 200 else []
        parts += [f"{self.columns} columns"] if self.columns else []
        parts += [f"polish {self.polish}"] if self.polish else []
        return f"{OURS}, {', '.join(parts) or 'defaults'}"

    def prepare(self, data: Symbols) -> Any:
        # kernels are compiled once and kept
        few = np.arange(300) % data.n_symbols
        self._estimator(1, data.n_symbols).fit(few)
        return data

    def fit(self, prepared: Symbols) -> MomentHMM:
        batch = prepared.training
        estimator = self._estimator(prepared.states, prepared.n_symbols)
        return estimator.fit(batch.symbols, lengths=lengths_of(batch).tolist())

    def result(self, fitted: MomentHMM, prepared: Symbols) -> tuple[HiddenMarkovModel, float]:
        return fitted.model_, float("nan")

    def _estimator(self, states: int, n_symbols: int) -> MomentHMM:
        return MomentHMM(
            states,
            n_symbols,
            refine=self.refine,
            polish=self.polish,
            sketch_columns=self.columns,
        )


@dataclass(frozen=True)
class Hmmlearn:
    """hmmlearn's CategoricalHMM by scaling, its faster implementation, from one random start.

    To convergence: until a round gains less than `tolerance` nats a symbol, or as many rounds.
    """

    rounds: int = 300
    tolerance: float = 1e-6
    seed: int = 1

    @property
    def name(self) -> str:
        return f"hmmlearn, at most {self.rounds} rounds"

    def prepare(self, data: Symbols) -> Any:
        import hmmlearn.hmm  # noqa: F401 - imported outside the clock

        return data, data.training.symbols.reshape(-1, 1), lengths_of(data.training)

    def fit(self, prepared: Any) -> Any:
        data, symbols, lengths = prepared
        return self.begun(data, self.rounds).fit(symbols, lengths)

    def result(self, fitted: Any, prepared: Any) -> tuple[HiddenMarkovModel, float]:
        # of the last round, before its step
        return markov_of(fitted), float(fitted.monitor_.history[-1])

    def begun(self, data: Symbols, rounds: int, **told: Any) -> Any:
        """A model that has seen nothing."""
        from hmmlearn.hmm import CategoricalHMM

        # it says when a round loses a rounding error
        logging.getLogger("hmmlearn").setLevel(logging.ERROR)
        return CategoricalHMM(
            data.states,
            n_features=data.n_symbols,
            n_iter=rounds,
            tol=self.tolerance * data.training.symbols.size,
            random_state=self.seed,
            implementation="scaling",
            **told,
        )


@dataclass(frozen=True)
class Pomegranate:
    """pomegranate's DenseHMM, in PyTorch, on sequences cut to pieces of one length."""

    rounds: int = 50
    tolerance: float = 1e-6
    seed: int = 1

    @property
    def name(self) -> str:
        return f"pomegranate, at most {self.rounds} rounds"

    def prepare(self, data: Symbols) -> Any:
        import torch

        torch.set_num_threads(CORES)
        starts = data.training.offsets.tolist()
        symbols = data.training.symbols.astype(np.int64)
        cut = [
            symbols[at : min(at + _PIECE, end)]
            for at, end in pairwise(starts)
            for at in range(at, end, _PIECE)
        ]
        by_length: dict[int, list[Any]] = {}
        for one in cut:
            by_length.setdefault(one.size, []).append(one)
        pieces = [torch.tensor(np.stack(some)[:, :, None]) for some in by_length.values()]
        return data, pieces

    def fit(self, prepared: Any) -> Any:
        import torch
        from pomegranate.distributions import Categorical
        from pomegranate.hmm import DenseHMM

        data, pieces = prepared
        rng = np.random.default_rng(self.seed)
        k, n = data.states, data.n_symbols
        tables = rng.dirichlet(np.ones(n), k).astype(np.float32)
        emission = [Categorical([row.tolist()]) for row in tables]
        moves = rng.dirichlet(np.ones(k), k).astype(np.float32)
        # no end states: the pieces end where they were cut
        model = DenseHMM(
            emission,
            edges=torch.tensor(moves),
            starts=torch.full((k,), 1 / k),
            max_iter=self.rounds,
            tol=self.tolerance * data.training.symbols.size,
        )
        return model.fit(pieces)

    def result(self, fitted: Any, prepared: Any) -> tuple[HiddenMarkovModel, float]:
        _, pieces = prepared
        emission = np.stack([one.probs.detach().numpy()[0] for one in fitted.distributions], axis=1)
        moves = np.exp(fitted.edges.detach().numpy()).T
        start = np.exp(fitted.starts.detach().numpy())
        arrays = [np.asarray(one / one.sum(axis=0), np.float64) for one in (emission, moves, start)]
        likelihood = sum(float(fitted.log_probability(one).sum()) for one in pieces)
        return HiddenMarkovModel(*arrays, arrays[2]), likelihood


@dataclass(frozen=True)
class Race:
    """Seconds to the same perplexity of held-out letters: ours, and hmmlearn round by round."""

    source: TextSymbols
    seed: int = 1
    rounds: int = 300
    step: int = 5

    @property
    def name(self) -> str:
        return f"race on {self.source.name}, hmmlearn seed {self.seed}"

    def run(self, clock: Clock) -> Mapping[str, float]:
        data = self.source.load()
        ours, peer = OurMarkov(), Hmmlearn(seed=self.seed)
        prepared = ours.prepare(data), peer.prepare(data)
        with clock.running("ours"):
            fitted = ours.fit(prepared[0])
        target = fitted.model_.perplexity(data.held_out)
        _, symbols, lengths = prepared[1]
        model, rounds, reached = peer.begun(data, self.step), 0, np.inf
        while reached > target and rounds < self.rounds:
            if rounds == self.step:
                model.init_params = ""
            with clock.running("hmmlearn"):
                model.fit(symbols, lengths)
            rounds += self.step
            reached = markov_of(model).perplexity(data.held_out)
        return {
            "ours_perplexity": target,
            "hmmlearn_perplexity": reached,
            "rounds": rounds,
            "times": clock.stages["hmmlearn"] / clock.stages["ours"],
        }


@dataclass(frozen=True)
class Pass:
    """One core: the windows of all symbols counted, then fits of them."""

    source: PlantedSequences | TextSymbols
    columns: int | None = None

    @property
    def name(self) -> str:
        return f"pass over {self.source.name}"

    def run(self, clock: Clock) -> Mapping[str, float]:
        data = self.source.load()
        batch, k = data.training, data.states
        with threadpool_limits(1):
            # of the first sequences the sketch; kernels are compiled once and kept
            first = int(batch.offsets[max(1, batch.documents // 10)])
            pilot = MomentHMM(k, data.n_symbols, sketch_columns=self.columns)
            foundation = pilot.fit(batch.symbols[:first]).statistics_.foundation
            with clock.running("count"):
                rows = InMemory((foundation.of_sequences(batch),))
            for rounds in (0, MarkovOptions(topics=k).refine):
                with clock.running(f"refine {rounds}"):
                    model = HiddenMarkovModel.fit(rows, MarkovOptions(topics=k, refine=rounds))
        return {
            "symbols": batch.symbols.size,
            "s_a_million": clock.stages["count"] / batch.symbols.size * 1e6,
            "perplexity": model.perplexity(data.held_out),
        }


def markov_of(found: Any) -> HiddenMarkovModel:
    """Of an estimator of hmmlearn."""
    emission = np.ascontiguousarray(found.emissionprob_.T)
    moves = np.ascontiguousarray(found.transmat_.T)
    return HiddenMarkovModel(emission, moves, found.startprob_, found.startprob_)
