"""Schema: required form of the JSON of a store; keys of later versions are preserved."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    StrictInt,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import CoreSchema, core_schema

from streaming_moments.errors import StoreError, printable
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.log.layout import require_label, require_name

T = TypeVar("T")
_SHOWN = 100  # an error shows at most this many characters of a value


def _all_of(pattern: str, what: str) -> AfterValidator:
    whole = re.compile(pattern)

    def check(text: str) -> str:
        if not whole.fullmatch(text):
            raise ValueError(f"{text[:_SHOWN]!r} {what}")
        return text

    return AfterValidator(check)


_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
Count = Annotated[StrictInt, Field(ge=0, lt=1 << 63)]
IDENTITY_FORM = "^[0-9a-f]{32}$"
Identity = Annotated[str, _all_of(IDENTITY_FORM, "is not 32 hexadecimal digits")]
Digest = Annotated[str, _all_of(r"[0-9a-f]{64}", "is not 64 hexadecimal digits")]
Path = Annotated[str, Field(max_length=500), _all_of(f"{_PART}(/{_PART})*", "leaves its folder")]
Name = Annotated[str, AfterValidator(require_name)]
Label = Annotated[str, AfterValidator(require_label)]
Days = Annotated[DateRange, BeforeValidator(DateRange.from_json)]


class Extensible:
    """Base of dataclasses whose field `unknown` preserves keys that later versions wrote.

    `always` names keys that are written even if their field has its default value.
    """

    always: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the schema of the dataclass, for pydantic."""
        names = {field.name for field in fields(source)} - {"unknown"}

        def kept(content: Any) -> Any:
            if not isinstance(content, dict):
                return content
            if lacking := sorted(cls.always - content.keys()):
                raise ValueError(f"it lacks the keys {', '.join(lacking)}")
            known = {name: value for name, value in content.items() if name in names}
            rest = {name: value for name, value in content.items() if name not in names}
            return {**known, "unknown": rest}

        return core_schema.no_info_before_validator_function(kept, handler(source))


def checked(adapter: TypeAdapter[T], content: object, problem: str) -> T:
    """Validate the decoded content of a JSON file with pydantic.

    Raises StoreError with `problem` and the first invalid place.

    Examples
    --------
    >>> checked(TypeAdapter(dict[str, Count]), {"documents": 3}, "commit 1 is invalid")
    {'documents': 3}
    >>> checked(TypeAdapter(dict[str, Count]), {"documents": -5}, "commit 1 is invalid")
    Traceback (most recent call last):
        ...
    streaming_moments.errors.StoreError: commit 1 is invalid (documents: Input should be greater \
than or equal to 0); restore it from a copy
    """
    try:
        return adapter.validate_python(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))[:_SHOWN]
        what = first["msg"].removeprefix("Value error, ")
        reason = printable(f"{place}: {what}" if place else what)
        raise StoreError(f"{problem} ({reason}); restore it from a copy") from error
