"""Campaigns of faults: short in the suite, long by `make faults`, which prints their figures."""

import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

FIXED_SEED = 20261121


@dataclass(frozen=True)
class Figure:
    """What a campaign tried, and how often it ended as it must."""

    campaign: str
    tried: int
    held: int
    note: str


@dataclass(frozen=True)
class Campaigns:
    """How many faults to try, and from which seed; `drawn` where it is not the usual one."""

    long: bool
    seed: int
    drawn: bool = False
    figures: list[Figure] = field(default_factory=list)

    @classmethod
    def asked_for(cls):
        """Those of the environment; SEED is a number, or "random"."""
        long = os.environ.get("STREAMING_MOMENTS_FAULTS") == "long"
        asked = os.environ.get("SEED") or ("random" if long else "")
        seed = int(time.time()) if asked == "random" else int(asked or FIXED_SEED)
        return cls(long, seed, bool(asked))

    def size(self, short, long):
        """Faults to try in this form."""
        return long if self.long else short

    def record(self, campaign, tried, held, note=""):
        """Keep a figure for the table at the end of the run; fail unless all held."""
        self.figures.append(Figure(campaign, tried, held, note))
        assert tried > 0
        assert held == tried, f"{campaign}: {held} of {tried} held (SEED={self.seed})"


CAMPAIGNS = pytest.StashKey[Campaigns]()


@contextmanager
def few_row_blocks(short=3):
    """Stores that are made here have three row blocks at least, in the long form eight as ever."""
    from streaming_moments.storage.log import layout

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            layout, "FEWEST_BLOCKS", Campaigns.asked_for().size(short, layout.FEWEST_BLOCKS)
        )
        yield
