"""Provenance: how a model was made, beside its fit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Polishing:
    """How a model was polished, as it says of itself.

    Parameters
    ----------
    parent : str
        Name of the model that the passes began with; empty where it has none.
    passes : int
        Over the documents.
    alpha : bool
        Whether alpha was learned from them.
    shards, documents, tokens : int
        That were read in the last pass; 0 shards where they were given in memory.
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
