"""Commands of click with help in sections, examples, and guesses at misspelt names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from streaming_moments.pipelines.terminal import (
    DETAILED,
    QUIET,
    event_logger,
    logged_to,
    tell,
    unheard,
)
from streaming_moments.printing.nearest import guess, nearest

OPTIONS = "Options"
PATTERN = "PATTERN"  # help shows this word for the value of an option that may name several shards
SOME = "Of --"  # first words of a heading for options of one kind or model
# Headings of options that many commands have; these sections come last.
READING, RUNNING, OUTPUT = "Limits of reading", "Where it runs", "Output and access"
_LAST = (READING, RUNNING, OUTPUT)
_Command = TypeVar("_Command", bound=Callable[..., Any] | click.Command)
_FEW = 5  # if a group has at most this many commands, an error lists all of them
_NAMED = 2  # if many commands have an option, an error names this many and counts the others
WIDTH = 100  # largest width of help, in columns of the terminal


class OneOf(click.Choice[str]):
    """Type of an option with some allowed names; an error suggests the nearest name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name."""
        if value not in self.choices:
            near = guess(str(value), self.choices)
            known = f"is not one of {', '.join(map(repr, self.choices))}."
            self.fail(f"{value!r} {f'is unknown; {near}' if near else known}", param, ctx)
        return str(value)


class GroupedOption(click.Option):
    """An option that help shows under one or several headings.

    `sections` maps each heading to the help of the option below it. None stands for the usual help.
    `values` returns the values that the shell completes, if the type of the option has none.
    """

    def __init__(
        self,
        *names: Any,
        sections: Mapping[str, str | None] | None = None,
        values: Callable[[], Iterable[str]] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(*names, **settings)
        self.sections, self.values = sections or {OPTIONS: None}, values

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a value from `values`, or else from the type of the option."""
        if self.values is None:
            return super().shell_complete(ctx, incomplete)
        return beginning_with(incomplete, self.values())


def quoted_pattern(flag: str) -> str:
    """Return the advice to put the pattern of an option in quotes."""
    return f"put the pattern of {flag} in quotes, such as {flag} 'documents/*.jsonl'"


def beginning_with(incomplete: str, values: Iterable[str]) -> list[CompletionItem]:
    """Return the values that begin with the incomplete value, for the shell."""
    return [CompletionItem(one) for one in values if one.startswith(incomplete.lower())]


class _GuessingOptions(click.Command):
    """A command whose error for an unknown option names a similar option or other commands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        whole = [*args]  # a copy, because click empties `args`
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name
            known = [flag for param in self.params for flag in param.opts if flag[:2] == "--"]
            told = guess(name, known) or _elsewhere(name, ctx)
            raise _with_guess(error, told, ctx) from error
        except click.BadOptionUsage as error:
            error.ctx = error.ctx or ctx  # click needs the context to name the command
            raise
        except click.UsageError as error:
            # The shell replaces an unquoted pattern by all matching names. The option takes only
            # the first name, and click reports the others.
            patterns = (one for one in self.params if one.metavar == PATTERN)
            given = [flag for one in patterns for flag in one.opts if flag in whole]
            if not given or not error.message.startswith("Got unexpected extra argument"):
                raise
            raise _with_guess(error, quoted_pattern(given[0]), ctx) from error


class GroupedCommand(_GuessingOptions):
    """A command with `--quiet` and `--verbose`, whose help has sections and examples."""

    def __init__(
        self, *names: Any, examples: Sequence[str] = (), events: bool = False, **settings: Any
    ) -> None:
        super().__init__(*names, **settings)
        self.examples, self.events = tuple(examples), events
        self.params += [
            _flag("--quiet", "-q", QUIET, "Print only requested data, warnings and errors."),
            _flag("--verbose", "-v", DETAILED, "Also print details."),
        ]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and report if a storage does not answer.

        With `events` the report is an event of the log instead of a line for people.
        """
        # imported here, because help is printed faster without these modules
        from streaming_moments.storage.files.noted_options import NotedOptions, without_effect
        from streaming_moments.storage.files.silence import SILENCE

        heard = unheard if QUIET in ctx.meta else event_logger().warning if self.events else tell
        with logged_to(heard, SILENCE):
            result = super().invoke(ctx)
        options = ctx.params.get("storage_options")
        if isinstance(options, NotedOptions) and not options.used and not _on_workers(ctx):
            places = [*_urls(self, ctx)]
            if line := without_effect("--storage-options", options, places):
                tell(f"warning: {line}")
        return result

    def sections(self, context: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Return the flags and help of options below each heading, in the order of the help."""
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
        """Write the examples without line breaks, so that users can paste them."""
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class CommandGroup(_GuessingOptions, click.Group):
    """A group of commands; its error for an unknown command suggests the nearest name."""

    command_class = GroupedCommand

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first paragraph of the help of each command; click itself would shorten it."""
        lines = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (one.help or "").partition("\n\n")[0]) for name, one in lines if one]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of that name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            names = self.list_commands(ctx)
            few = f"choose among {', '.join(names)}" if len(names) <= _FEW else ""
            raise _with_guess(error, guess(args[0], names, few), ctx) from error


def in_section(heading: str, *flags: str, **settings: Any) -> Callable[[_Command], _Command]:
    """Return a decorator that adds an option to a command; help shows it under the heading."""
    return click.option(*flags, cls=GroupedOption, sections={heading: None}, **settings)


def _urls(command: click.Command, context: click.Context) -> Iterator[str]:
    """Yield the paths and URLs among the values of the options and arguments of a command."""
    for param in command.params:
        value = context.params.get(param.name or "")
        if param.type.name == "url" and param.name != "scheduler" and value is not None:
            yield from (value,) if isinstance(value, str) else value


def _on_workers(context: click.Context) -> bool:
    """Whether other processes may have used the storage options.

    This is so if a command without given shards runs on a cluster: it may read shards that the
    store names.
    """
    session = any(context.params.get(name) for name in ("workers", "scheduler"))
    return session and not context.params.get("shards")


def _with_guess(error: click.UsageError, told: str, context: click.Context) -> click.UsageError:
    return click.UsageError("; ".join(filter(None, (error.message.rstrip("."), told))), context)


def _elsewhere(name: str, context: click.Context) -> str:
    """Say which other commands have this option, or a similar one; return "" if none has."""
    if not name.startswith("--"):
        return ""
    having: dict[str, list[str]] = {}
    root = context.find_root()
    for where, command in _commands_below(root.command, root, ""):
        for param in command.params:
            for flag in {*param.opts, *param.secondary_opts} if where else ():
                having.setdefault(flag, []).append(f"`{where}`")
    found = name if name in having else nearest(name, having)
    if found is None:
        return ""
    named, more = having[found], len(having[found]) - _NAMED
    if more > 1:
        named = [*named[:_NAMED], f"{more} more"]
    others = " and ".join(filter(None, (", ".join(named[:-1]), named[-1])))
    return f"{found!r} is an option of {others}"


def _commands_below(
    command: click.Command, context: click.Context, where: str
) -> Iterator[tuple[str, click.Command]]:
    yield where, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _commands_below(below, context, f"{where} {name}".strip())


def _place(heading: str) -> int:
    """Return the rank of a heading in the help.

    Options of the command come first, then those of some kinds or models, then those of many
    commands.
    """
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
