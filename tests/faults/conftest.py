"""Campaigns of faults: short in the suite, long by `make faults`, which prints their figures."""

import os
import time
from dataclasses import dataclass, field

import pytest

_LONG = os.environ.get("STREAMING_MOMENTS_FAULTS") == "long"
_SEED = int(os.environ.get("SEED") or time.time())


@dataclass(frozen=True)
class Figure:
    """What a campaign tried, and how often it ended as it must."""

    campaign: str
    tried: int
    held: int
    note: str


@dataclass(frozen=True)
class Campaigns:
    """How many faults to try, and from which seed to draw them."""

    long: bool
    seed: int
    figures: list[Figure] = field(default_factory=list)

    def size(self, short, long):
        """Faults to try in this form."""
        return long if self.long else short

    def record(self, campaign, tried, held, note=""):
        """Keep a figure for the table at the end of the run; fail unless all held."""
        self.figures.append(Figure(campaign, tried, held, note))
        assert tried > 0
        assert held == tried, f"{campaign}: {held} of {tried} held (SEED={self.seed})"


_CAMPAIGNS = pytest.StashKey[Campaigns]()


def pytest_configure(config):
    config.stash[_CAMPAIGNS] = Campaigns(_LONG, _SEED)


@pytest.fixture
def campaigns(request):
    return request.config.stash[_CAMPAIGNS]


def pytest_terminal_summary(terminalreporter, config):
    campaigns = config.stash[_CAMPAIGNS]
    if not campaigns.figures:
        return
    form = "long" if campaigns.long else "short"
    terminalreporter.section(f"fault campaigns, {form} form, SEED={campaigns.seed}")
    for figure in campaigns.figures:
        terminalreporter.line(
            f"{figure.campaign:<58} {figure.held:>6} of {figure.tried:>6} {figure.note}"
        )
