"""Provenance: records of what was done to a model after its topics were decomposed."""

from __future__ import annotations

from dataclasses import dataclass

from streaming_moments.printing.plural import of_number


@dataclass(frozen=True)
class Polishing:
    """Record of the polishing of a model.

    parent : name of the model before the passes; empty if it has none
    passes : number of passes over the records
    alpha : whether the passes also learned alpha
    shards, documents, tokens : numbers of shards, records and tokens that the last pass read; the
        number of shards is 0 for records in memory
    """

    parent: str
    passes: int
    alpha: bool
    shards: int
    documents: int
    tokens: int

    @property
    def sentence(self) -> str:
        """One sentence for people."""
        where = f" of {of_number(self.shards, 'shard')}" if self.shards else ""
        parent = f" from model {self.parent}" if self.parent else ""
        learned = ", alpha learned" if self.alpha else ""
        times = "once" if self.passes == 1 else f"{self.passes} times"
        return (
            f"polished{parent}: {of_number(self.documents, 'record')}{where} read {times}{learned}"
        )


@dataclass(frozen=True)
class SecondStart:
    """Record of a second start, which a fit of topics makes if some topics are near-duplicates.

    repeated : number of topics that were drawn again, because they were near-duplicates of a topic
        with more weight
    gain : gain of the second start in held-out log-likelihood per word pair
    noise : half the difference of this gain between the two halves of the documents
    """

    repeated: int
    gain: float
    noise: float

    @property
    def kept(self) -> bool:
        """Whether the topics come from the second start.

        Examples
        --------
        >>> SecondStart(2, gain=0.002, noise=0.001).kept, SecondStart(2, -0.1, 0.001).kept
        (True, False)
        """
        return self.gain > self.noise

    @property
    def sentence(self) -> str:
        """Sentence for users about the second start."""
        topics = (
            "1 topic was a near-duplicate"
            if self.repeated == 1
            else (f"{self.repeated} topics were near-duplicates")
        )
        kept = "used a second start" if self.kept else "a second start was no better"
        return f"{topics}: {kept}, {self.gain:+.4f} held-out log-likelihood per pair"
