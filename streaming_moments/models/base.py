"""Model: what a fit gives, a store keeps and the commands show, whatever it is a model of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Columns
from streaming_moments.decompositions.methods import METHODS, decomposition_called
from streaming_moments.decompositions.moments import require_topics
from streaming_moments.errors import InvalidInput
from streaming_moments.models.numbers.number_search import Trial
from streaming_moments.models.rows import Rows
from streaming_moments.numerics.seeds import require_seed
from streaming_moments.printing.short_repr import short_repr

Arrays = Mapping[str, NDArray[Any]]
Attributes = Mapping[str, Any]


def require_joint(method: str, of: str) -> None:
    """Raise InvalidInput for a `method` other than the only decomposition of moments `of` a kind.

    Examples
    --------
    >>> require_joint("joint", "three views")
    """
    if method != "joint":
        raise InvalidInput(f'{of} are decomposed by "joint", not by "{method}"')


def option(
    told: str, default: Any = MISSING, check: Callable[[Any], object] | None = None, **more: Any
) -> Any:
    """Make a field of a frozen dataclass that becomes an option of commands and a key of files.

    `told` is its help. Without a `default` it must be given. `check` raises `InvalidInput` for an
    invalid value. `more` may hold `choices`, where only some values are valid; `auto`, the
    words for which a refit finds one, and `found`, the value by which the fit does so itself;
    `also`, other names of the option.
    """
    return field(default=default, metadata={"help": told, "check": check, **more})


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What every fit of the moments is told; a model adds its own.

    Command line, `[refit]` of a nightly run and documentation are made of the fields.

    Raises
    ------
    InvalidInput
        The check of a field refuses its value.
    """

    topics: int = option(
        "Number of topics, states or components; auto: as many as halves of the records tell "
        "apart; predict: the fewest that predict best what is held out.",
        check=require_topics,
        auto=("auto", "predict"),
        also=("components",),
    )
    method: str = option(
        "Decomposition of the third moment.", "joint", decomposition_called, choices=METHODS
    )
    seed: int = option("Of the random starts of power, svd, eigen and als.", 0, require_seed)

    def __post_init__(self) -> None:
        for one in fields(self):
            if (check := one.metadata["check"]) is not None:
                check(getattr(self, one.name))

    @property
    def summary(self) -> str:
        """What a log says of the fit."""
        return f"{self.topics} topics"

    @property
    def label(self) -> str:
        """What a model is called after."""
        return f"k{self.topics}-{self.method}"


@dataclass(frozen=True, eq=False)
class Description:
    """What a model says of itself, beside its topics.

    Parameters
    ----------
    facts : dict
        Of the whole: plain values by name.
    columns : dict
        (k,) numbers by name, one for each topic or state.
    sentence : str
        What people should know of it.
    picture : str
        Lines that draw it, for a terminal.
    """

    facts: dict[str, Any]
    columns: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    sentence: str = ""
    picture: str = ""

    __repr__ = short_repr


class Model(Protocol):
    """A class of this shape and a line in `models.MODELS`: a frozen dataclass, fitted from rows."""

    name: ClassVar[str]
    """In the registry, the store and `refit --model`."""
    kind: ClassVar[str]
    """Of the statistics that it is fitted on."""
    Options: ClassVar[type[FitOptions]]
    compares_halves: ClassVar[bool]
    """Whether its fit reads what statistics keep of halves of the documents."""

    of_numbers: ClassVar[bool]
    """Whether its arrays are parameters of rows of numbers, and not distributions over words."""
    finds_topics: ClassVar[bool]
    """Whether pairs held out tell how many topics, where it is not told how many."""
    numbered: ClassVar[str]
    """What it has a number of, in the plural."""
    holds_out: ClassVar[str]
    """What of each half of the records tells how many, in the plural; empty where nothing does."""
    fewest: ClassVar[tuple[int, int]]
    """Documents, and those for each topic, below which a fit says nothing."""

    @property
    def documents(self) -> int:
        """Records it was fitted on."""

    @property
    def scored(self) -> NDArray[np.float64] | None:
        """(n, k) distributions over words that have a coherence; None of other models."""

    @property
    def mean_coherences(self) -> dict[str, float | None]:
        """Mean coherences of what is `scored`, by key; None where they were not computed."""

    @property
    def captured_share(self) -> float | None:
        """Smallest share of an eigenvalue that the basis sees; None where it is not known."""

    @property
    def moments(self) -> tuple[int, float] | None:
        """Topics and alpha0 of the moments of documents that it was fitted to; None of others."""

    @property
    def vocabulary(self) -> str:
        """Fingerprint of its words."""

    @property
    def since(self) -> str | None:
        """First day of the records, where it was fitted on a window of time; so the next two."""

    @property
    def until(self) -> str | None: ...
    @property
    def half_life(self) -> float | None: ...

    @classmethod
    def fit(cls, rows: Rows, options: Any) -> Self:
        """The model of these statistics.

        Raises
        ------
        NotIdentifiable
            They do not hold it: says why.
        """

    @classmethod
    def trial(cls, rows: Rows, options: Any) -> Trial | None:
        """What halves say of the number of these options; None of an empty one. Errors as `fit`."""

    @classmethod
    def fit_bytes(cls, foundation: Any, options: Any) -> int:
        """Bytes that the last step of its fit on a foundation holds at most, for memory plans."""

    def parts(self) -> tuple[Arrays, Attributes]:
        """Arrays and attributes, such as JSON can hold, of which `from_parts` makes it again."""

    @classmethod
    def from_parts(cls, arrays: Arrays, attributes: Attributes) -> Self:
        """The model that `parts` described.

        Raises
        ------
        InvalidInput
            A part is missing: names it.
        """

    def described(self) -> Description:
        """What the commands show of it."""

    def summary(self) -> dict[str, Any]:
        """What a log says of its fit, by name."""

    def read(self, batch: Any, method: str = "", seed: int | None = None) -> Columns:
        """Say something of each record of a batch: `transform` writes it, the service answers it.

        A name means the same in all models: `length` in known words, the likeliest `topic`,
        `proportions`, `log_likelihood`.
        """
