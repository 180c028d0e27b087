"""Provenance: how a model was made, beside its fit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Polishing:
    """How a model was polished.

    parent : name of the model that the passes began with; empty where it has none
    passes : number over the documents
    alpha : whether alpha was learned from them
    shards, documents, tokens : numbers read in the last pass; 0 shards where documents were given
        in memory
    """

    parent: str
    passes: int
    alpha: bool
    shards: int
    documents: int
    tokens: int

    @property
    def sentence(self) -> str:
        """What people should know of it."""
        where = f" of {self.shards:,} shards" if self.shards else ""
        parent = f" from model {self.parent}" if self.parent else ""
        learned = ", alpha learned" if self.alpha else ""
        times = "once" if self.passes == 1 else f"{self.passes} times"
        return f"polished{parent}: {self.documents:,} documents{where} read {times}{learned}"


@dataclass(frozen=True)
class SecondStart:
    """What a second start gave, where decomposed topics repeated.

    repeated : topics that were much like one of more weight, and were redrawn
    gain : of the log-likelihood of a held-out pair, by the second start
    noise : half of the difference between the halves in that
    """

    repeated: int
    gain: float
    noise: float

    @property
    def kept(self) -> bool:
        """Whether the topics are those of the second start.

        Examples
        --------
        >>> SecondStart(2, gain=0.002, noise=0.001).kept, SecondStart(2, -0.1, 0.001).kept
        (True, False)
        """
        return self.gain > self.noise

    @property
    def sentence(self) -> str:
        """What people should know of it.

        Examples
        --------
        >>> SecondStart(1, gain=0.002, noise=0.001).sentence
        '1 topic repeated another: kept a second start, +0.0020 a pair held out'
        """
        topics = (
            "1 topic repeated another"
            if self.repeated == 1
            else (f"{self.repeated} topics repeated others")
        )
        kept = "kept a second start" if self.kept else "a second start was no better"
        return f"{topics}: {kept}, {self.gain:+.4f} a pair held out"
