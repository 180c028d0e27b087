"""What is said of a model and of its parts, once: as a table, as JSON, on the terminal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from streaming_moments.models.base import Description
from streaming_moments.pipelines.reports.model_pages.printed_model import (
    print_states,
    print_topics,
)
from streaming_moments.pipelines.reports.states import (
    StateLine,
    no_bars,
    parameters_as_json,
    state_lines,
    states_as_json,
)
from streaming_moments.pipelines.reports.tables import (
    TopicLine,
    as_json,
    described_as_json,
    model_scores,
    scores_line,
    together_line,
    topic_lines,
)
from streaming_moments.pipelines.terminal import say
from streaming_moments.storage.operations.lineages import vocabulary_of
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True, eq=False)
class ModelView(ABC):
    """A model and its description, ready to be shown.

    `halves` says whether its store keeps halves of the records apart, which error bars need.
    """

    model: Any
    described: Description
    halves: bool

    @property
    @abstractmethod
    def parts(self) -> dict[str, Any]:
        """The parts as JSON: `topics`, or no topics and `states`."""

    @property
    @abstractmethod
    def scores(self) -> dict[str, Any]:
        """Numbers of the whole model that are computed when it is shown, as JSON."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """What each part is called: its label, or its first words."""

    @abstractmethod
    def print(self, console: Console, title: str = "", starred: Container[str] = ()) -> None:
        """Print a table of the parts, or the picture that the model draws of itself.

        Words that are `starred` are marked by an asterisk.
        """

    @property
    def as_json(self) -> dict[str, Any]:
        """What it was fitted on, what it says of itself, and its parts."""
        return {**described_as_json(self.model), **self.parts}

    @property
    def sentences(self) -> list[str]:
        """What it says of itself in words."""
        return [self.described.sentence]

    @property
    def lacks(self) -> list[str]:
        """The sentence on error bars that it lacks, if it lacks any."""
        return [*filter(None, (no_bars(self.model, self.halves),))]


@dataclass(frozen=True, eq=False)
class TopicsView(ModelView):
    """Topics, each with its words by relevance of a weight."""

    lines: tuple[TopicLine, ...]
    weight: float

    @property
    def parts(self) -> dict[str, Any]:
        """Topics."""
        return {"topics": [as_json(line) for line in self.lines]}

    @property
    def scores(self) -> dict[str, Any]:
        """Coherence and diversity."""
        return dict(model_scores(self.model))

    @property
    def names(self) -> list[str]:
        """Labels, or the first two words."""
        return [line.label or " ".join(line.words[:2]) for line in self.lines]

    def print(self, console: Console, title: str = "", starred: Container[str] = ()) -> None:
        """Print a table of topics."""
        print_topics(console, self.lines, title, self.weight, starred, self.described.columns)

    @property
    def sentences(self) -> list[str]:
        """Scores, which topics go together, and what the model says of itself."""
        told = scores_line(self.model), together_line(self.model)
        return [*filter(None, told), self.described.sentence]


@dataclass(frozen=True, eq=False)
class StatesView(ModelView):
    """States, clusters or factors, each with its words in every view, if there are words."""

    what: str
    lines: tuple[StateLine, ...]

    @property
    def parts(self) -> dict[str, Any]:
        """States."""
        return {"topics": [], "states": states_as_json(self.lines)}

    @property
    def scores(self) -> dict[str, Any]:
        """The parameters of a model of rows."""
        return parameters_as_json(self.model)

    @property
    def names(self) -> list[str]:
        """Labels, or what a part is and its number."""
        return [line.label or f"{self.what} {line.state}" for line in self.lines]

    def print(self, console: Console, title: str = "", starred: Container[str] = ()) -> None:
        """Print the picture of the model, or else a table of its states."""
        if self.described.picture:
            say(*filter(None, (title,)), *self.described.picture.splitlines())
            return
        print_states(console, self.lines, self.model, title, self.what)


def topics_view(
    store: MomentStore, model: Any, words: int, weight: float, labels: Mapping[int, str]
) -> ModelView:
    """Of a model with topics; arguments as of `model_view`."""
    lines = topic_lines(model, vocabulary_of(store, model), words, weight, labels)
    return TopicsView(model, model.described(), store.halves, tuple(lines), weight)


def states_view(
    what: str,
    store: MomentStore,
    model: Any,
    words: int,
    weight: float,
    labels: Mapping[int, str],
) -> ModelView:
    """Of another model, whose parts are `what`; other arguments as of `model_view`."""
    lines = state_lines(model, store, words, labels)
    return StatesView(model, model.described(), store.halves, what, tuple(lines))
