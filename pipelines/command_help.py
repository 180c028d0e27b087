"""Help of commands: options under headings, examples, and the two options of every command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from streaming_moments.pipelines.terminal import DETAILED, QUIET

OPTIONS = "Options"
SOME = "Of --"  # how headings of options of one kind or model begin
# Headings of options that many commands have; these sections come last.
READING, RUNNING, OUTPUT = "Limits of reading", "Where it runs", "Output and access"
_LAST = (READING, RUNNING, OUTPUT)
_Command = TypeVar("_Command", bound=Callable[..., Any] | click.Command)
WIDTH = 100  # largest width of help, in columns of the terminal


class GroupedOption(click.Option):
    """An option that help shows under one or several headings.

    `sections` has the headings, each with the help that the option has there. None stands for the
    help that it has everywhere.
    """

    def __init__(
        self, *names: Any, sections: Mapping[str, str | None] | None = None, **settings: Any
    ) -> None:
        super().__init__(*names, **settings)
        self.sections = sections or {OPTIONS: None}


class GroupedCommand(click.Command):
    """A command whose help has sections and examples; every one has `--quiet` and `--verbose`."""

    def __init__(self, *names: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.examples = tuple(examples)
        self.params += [
            _flag("--quiet", "-q", QUIET, "Print results, warnings and errors only."),
            _flag("--verbose", "-v", DETAILED, "Also print details."),
        ]

    def sections(self, context: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Flags and help of the options, by heading in the order of the help."""
        found: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(context):
            record = param.get_help_record(context) if isinstance(param, click.Option) else None
            if record is not None:
                plain = {OUTPUT if "--help" in param.opts else OPTIONS: None}
                for heading, told in getattr(param, "sections", plain).items():
                    found.setdefault(heading, []).append((record[0], told or record[1]))
        return {heading: found[heading] for heading in sorted(found, key=_place)}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each section of options."""
        for heading, records in self.sections(ctx).items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they can be pasted."""
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class CommandGroup(click.Group):
    """A command of commands."""

    command_class = GroupedCommand


def in_section(heading: str, *flags: str, **settings: Any) -> Callable[[_Command], _Command]:
    """Return `click.option` for an option under a heading."""
    return click.option(*flags, cls=GroupedOption, sections={heading: None}, **settings)


def _place(heading: str) -> int:
    """Options of the command itself first, of some kinds or models later, of many commands last."""
    if heading in _LAST:
        return 3 + _LAST.index(heading)
    return 0 if heading == OPTIONS else 2 if heading.startswith(SOME) else 1


def _flag(name: str, short: str, key: str, told: str) -> GroupedOption:
    def note(context: click.Context, param: click.Parameter, given: bool) -> None:
        if given:
            context.meta[key] = True

    return GroupedOption(
        [name, short],
        is_flag=True,
        expose_value=False,
        callback=note,
        help=told,
        sections={OUTPUT: None},
    )
