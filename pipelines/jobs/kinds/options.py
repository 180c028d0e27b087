"""KindOptions: the kind of records in shards, and the columns that have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass
from functools import partial
from typing import Any

from streaming_moments.arguments import checked
from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import option
from streaming_moments.pipelines.command_help import SOME
from streaming_moments.pipelines.quantities import Count, require_ranges
from streaming_moments.printing.remedies import of_commands
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.edges.foundation import WHOLE_NODES
from streaming_moments.statistics.registry import KINDS
from streaming_moments.storage.counting.symbols.sequences import SYMBOLS, Symbols
from streaming_moments.storage.counting.vectors import BAD_ROWS, BadRows

# Heading of the options about the data, in the help of `create`.
DATA = "Data in SHARDS"
_HOLD = (
    f"Kind of the data: {CountsFoundation.kind} (words or ids in documents), "
    f"{', '.join(kind for kind in KINDS if kind != CountsFoundation.kind)}"
)
_SKETCH = (
    "Columns of the sketch, at least twice the number of states plus 2 [22; one for each if there "
    "are at most {}]"
)
# `OF_WORDS` are options of `create` for kinds with a vocabulary, `OF_TEXTS` for kinds with texts.
OF_WORDS = frozenset({"vocabulary_size", "min_documents"})
OF_TEXTS = frozenset(
    {"languages", "tokeniser", "stop_words", "phrases", "min_length", "max_document_fraction"}
)


def _of_kinds(told: Mapping[str, str]) -> dict[str, Any]:
    """Make the arguments of `option` for an option of several kinds; each kind has its own help."""
    every = "; ".join(f"of {kind} {text[0].lower()}{text[1:]}" for kind, text in told.items())
    sections = {kind_heading(kind): f"{text}." for kind, text in told.items()}
    return {"told": f"{every[0].upper()}{every[1:]}.", "sections": sections}


def kind_heading(kind: str) -> str:
    """Return the heading in help for the options of one kind."""
    return f"{SOME}kind {kind}"


@partial(checked, spell=of_commands)
@dataclass(frozen=True)
class KindOptions:
    """Kind and columns of the records in shards; the help of each field explains it."""

    __repr__ = short_repr

    kind: str = option(
        f"{_HOLD}.",
        CountsFoundation.kind,
        choices=tuple(KINDS),
        sections={DATA: f"{_HOLD} [found by the columns of SHARDS]."},
    )
    columns: str | None = option(
        **_of_kinds(
            {
                "views": "Three columns a,b,c, whose values are words; NAME:text splits texts into "
                "words",
                "sequences": "A column of lists, or the columns sequence,time,symbol in this "
                "order, or sequence,from,symbols with lists [lines of text]",
                "vectors": "A column of lists of numbers, or several columns of numbers [vector]",
                "edges": "Columns of the two nodes of an edge [source,target]",
                "sets": "A column of lists of features, or a column of 0 and 1 for each feature "
                "[features]",
            }
        ),
        default=None,
        metavar="NAMES",
    )
    symbols: Symbols = option(
        **_of_kinds({"sequences": "Symbol of a text: a character or a word [characters]"}),
        default="characters",
        choices=SYMBOLS,
    )
    sketch_columns: Count | None = option(
        **_of_kinds(
            {
                "views": _SKETCH.format("128 words"),
                "sequences": _SKETCH.format("128 symbols"),
                "vectors": "Columns of the sketch, at least 1.5 times the number of components "
                "[50; one for each if there are at most 64 numbers]",
                "edges": _SKETCH.format(f"{WHOLE_NODES:,} nodes"),
                "sets": _SKETCH.format("128 features"),
            }
        ),
        default=None,
    )
    directed: bool = option(
        **_of_kinds({"edges": "The target is a neighbour of the source, but not the reverse"}),
        default=False,
    )
    squares: bool = option(
        **_of_kinds({"vectors": "Store squares, for a variance of each coordinate in a component"}),
        default=False,
    )
    fourth: bool = option(
        **_of_kinds({"vectors": "Store fourth moments, which find factors without skew"}),
        default=False,
    )
    bad_rows: BadRows = option(
        **_of_kinds(
            {
                "vectors": "Skip rows of another width or with NaN, or refuse their shard [skip]",
            }
        ),
        default="skip",
        choices=BAD_ROWS,
    )

    def __post_init__(self) -> None:
        if isinstance(self.kind, str) and self.kind not in KINDS:
            raise InvalidInput(f"there is no kind {self.kind!r}; choose among {', '.join(KINDS)}")
        require_ranges(self)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(name.strip() for name in self.columns.split(",")) if self.columns else ()


def option_of(own: Field[Any]) -> str:
    """Return the option of `create` that sets a field, by the name that remedies use."""
    name: str = own.metadata.get("flag", own.name).lstrip("-").replace("-", "_")
    return f"no_{name}" if own.default is True else name
