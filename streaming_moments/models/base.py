"""Model: the protocol that all fitted models follow, so that stores can save and show them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Protocol, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from streaming_moments.arguments import checked
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
C = TypeVar("C", bound=type[Any])


def require_joint(method: str, of: str) -> None:
    """Raise InvalidInput unless `method` is "joint", for a kind of data that has no other method.

    Examples
    --------
    >>> require_joint("joint", "three views")
    """
    if method != "joint":
        raise InvalidInput(
            f'{of} are decomposed by "joint", not by "{method}"; leave the method out'
        )


def option(
    told: str, default: Any = MISSING, check: Callable[[Any], object] | None = None, **more: Any
) -> Any:
    """Make a dataclass field that is also an option of commands and a key of configuration files.

    `told` is the help text of the option. Without a `default`, the option is required. `check`
    raises `InvalidInput` for an invalid value. `more` can have these keys:

    choices : the valid values
    auto : words, such as "auto", that a user gives instead of a value; a refit then tries several
        values
    found : word that a user gives instead of a value, so that the fit itself finds the value
    also : other names of the option
    """
    return field(default=default, metadata={"help": told, "check": check, **more})


def takes_n_topics(options: C) -> C:
    """Let a class of options accept the argument `n_topics` for its field `topics`.

    The functions of the package call this argument `n_topics`. The field is called `topics`, like
    the option of commands and the key in the section `[refit]` of configuration files. The repr
    shows only options that differ from their defaults.
    """
    made = checked(options.__init__)

    @functools.wraps(made)
    def init(self: object, *args: Any, **given: Any) -> None:
        if "n_topics" in given and "topics" not in given:
            given["topics"] = given.pop("n_topics")
        made(self, *args, **given)

    changed = cast("Any", options)
    changed.__init__, changed.__repr__ = init, short_repr
    return options


@takes_n_topics
@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Options that all fits by moments have; a model can add more.

    The fields define options of the command line, keys in the section `[refit]` of configuration
    files, and the documentation of both. `n_topics` is another name of `topics` in calls.

    Raises
    ------
    InvalidInput
        A value is invalid.
    """

    topics: int = option(
        "Number of topics, states or components; auto: as many as are separable in the data; "
        "predict: the fewest with the best held-out log-likelihood.",
        check=require_topics,
        auto=("auto", "predict"),
        also=("components",),
    )
    method: str = option(
        "Decomposition of the third moment.", "joint", decomposition_called, choices=METHODS
    )
    seed: int = option(
        "Seed of random starts, of the methods power, svd, eigen and als.", 0, require_seed
    )

    def __post_init__(self) -> None:
        for one in fields(self):
            if (check := one.metadata["check"]) is not None:
                check(getattr(self, one.name))

    @property
    def summary(self) -> str:
        """Summary of the options for logs."""
        return f"{self.topics} topics"

    @property
    def label(self) -> str:
        """Text from which the default name of a fitted model is made."""
        return f"k{self.topics}-{self.method}"


@dataclass(frozen=True, eq=False)
class Description:
    """Summary of a model for users, without its topics.

    Parameters
    ----------
    facts : dict
        Values that describe the whole model, by name, such as the number of documents.
    columns : dict
        (k,) numbers by name, one for each topic or state.
    sentence : str
        Summary and warnings in one sentence.
    cautions : tuple of str
        The warnings in the sentence: where the model or its numbers may be wrong.
    picture : str
        Drawing of the model in characters, for terminals.
    """

    facts: dict[str, Any]
    columns: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    sentence: str = ""
    picture: str = ""
    cautions: tuple[str, ...] = ()

    __repr__ = short_repr


class Model(Protocol):
    """Protocol of a fitted model: a frozen dataclass with a line in `models.MODELS`."""

    name: ClassVar[str]
    """Name in the registry, in stores and for `refit --model`."""
    kind: ClassVar[str]
    """Kind of the statistics that it is fitted to."""
    Options: ClassVar[type[FitOptions]]
    compares_halves: ClassVar[bool]
    """Whether its fit uses halves of the documents."""

    of_numbers: ClassVar[bool]
    """Whether its arrays are parameters of numeric rows rather than distributions over words."""
    finds_topics: ClassVar[bool]
    """Whether it can find the number of topics by held-out pairs."""
    record: ClassVar[str]
    """Noun for the records of its fit."""
    numbered: ClassVar[str]
    """Plural noun for its topics, states, components or the like."""
    holds_out: ClassVar[str]
    """Plural noun for the held-out data that choose the number; empty if it holds nothing out."""
    fewest: ClassVar[tuple[int, int]]
    """Fewest documents, in all and for each topic, for a meaningful fit."""

    @property
    def documents(self) -> int:
        """Number of records that the model was fitted to."""

    @property
    def scored(self) -> NDArray[np.float64] | None:
        """(n, k) topics over words, whose coherence can be computed; None without such topics."""

    @property
    def mean_coherences(self) -> dict[str, float | None]:
        """Mean coherence of the topics by the name of the measure; None for one not computed."""

    @property
    def captured_share(self) -> float | None:
        """How well the basis preserves the second moment, from 0 to 1; None if unknown.

        Each leading eigenvalue has a preserved share. This is the smallest of these shares.
        """

    @property
    def moments(self) -> tuple[int, float] | None:
        """(number of topics, alpha0) of a model of documents; None for a model of other data."""

    @property
    def vocabulary(self) -> str:
        """Fingerprint of the vocabulary of the model."""

    @property
    def since(self) -> str | None:
        """First day of the records, if the fit used a window of days.

        `until` is the last day, and `half_life` the half-life of the weights of records.
        """

    @property
    def until(self) -> str | None: ...
    @property
    def half_life(self) -> float | None: ...

    @classmethod
    def fit(cls, rows: Rows, options: Any) -> Self:
        """Fit the model to statistics.

        Raises
        ------
        NotIdentifiable
            The statistics do not identify the model; the message says why.
        """

    @classmethod
    def trial(cls, rows: Rows, options: Any) -> Trial | None:
        """Fit each half of the data with the options, and score this fit on the other half.

        Returns None if a half is empty.

        Raises the errors of `fit`.
        """

    @classmethod
    def fit_bytes(cls, foundation: Any, options: Any) -> int:
        """Return a bound on the bytes that the last step of a fit holds in memory.

        Plans of memory for a job use it.
        """

    def parts(self) -> tuple[Arrays, Attributes]:
        """Return the arrays and JSON attributes from which `from_parts` restores the model."""

    @classmethod
    def from_parts(cls, arrays: Arrays, attributes: Attributes) -> Self:
        """Restore the model from its `parts`.

        Raises
        ------
        InvalidInput
            A part is missing; the message names it.
        """

    def described(self) -> Description:
        """Return the description of the model that commands show."""

    @property
    def rough_sentence(self) -> str:
        """Warning that some states have large errors; empty if none have."""
        ...

    def summary(self) -> dict[str, Any]:
        """Return values that summarise the fitted model for logs, by name."""

    def read(self, batch: Any, method: str = "", seed: int | None = None) -> Columns:
        """Return the results of the model for each record of a batch.

        `transform` and the service use them. Columns have the same names in all models: `length`
        (number of known words), `topic` (the most likely one), `proportions`, `log_likelihood`.
        """
