"""The reference: pages written from exported names, commands, calls and configuration keys.

Sphinx writes them at each build, so they are never behind the code.
"""

import re
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from streaming_moments import __version__
from streaming_moments.lazy_imports import exports_of
from streaming_moments.pipelines.command_help import GroupedCommand

# Packages whose exports people use, each with the title of its page. What an earlier page has is
# linked from a later one.
PACKAGES = {
    "streaming_moments": "The package",
    "streaming_moments.models": "Models: protocol and registry",
    "streaming_moments.models.chains": "Hidden Markov chains",
    "streaming_moments.decompositions": "Decompositions",
    "streaming_moments.statistics": "Statistics: protocol and registry",
    "streaming_moments.quality": "Quality of models",
    "streaming_moments.quality.coherences": "Coherences",
    "streaming_moments.synthetic": "Synthetic data",
    "streaming_moments.storage": "Shards and stores",
    "streaming_moments.storage.formats": "Formats of shards",
    "streaming_moments.pipelines": "Jobs",
    "streaming_moments.pipelines.nightly": "Nightly runs",
    "streaming_moments.pipelines.planning": "Planning",
    "streaming_moments.testing": "Testing a new model",
}
# The exports of the package stand on pages of their own, by the folder that defines them.
AREAS = {
    "sklearn": "Estimators",
    "pipelines": "Stores",
    "models": "Models",
    "statistics": "Counts and statistics",
    "": "Decompositions and errors",
}
_MEANINGS = tomllib.loads((Path(__file__).parent / "key_meanings.toml").read_text(encoding="utf-8"))
# Modules of synthetic data, whose functions examples import from there.
SYNTHETIC = ("graphs", "hidden", "mixtures", "sets", "tables")


def write(folder: Path) -> list[Path]:
    """Write all pages of the reference into its folder, and return them."""
    pages = {
        "commands.md": commands_page(),
        "http.md": http_page(),
        "configuration.md": configuration_page(),
        "metrics.md": metrics_page(),
        **dict(api_pages()),
    }
    generated = folder / "generated"
    generated.mkdir(exist_ok=True)
    paths = []
    for name, text in pages.items():
        path = generated / name
        # Sphinx reads again what was written after the last build
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def api_pages() -> Iterator[tuple[str, str]]:
    """Name and text of each page of exported names."""
    described: set[tuple[str, str]] = set()
    for package, title in PACKAGES.items():
        exports = exports_of_package(package)
        own = {name: module for name, module in exports.items() if (module, name) not in described}
        described |= {(module, name) for name, module in own.items()}
        if package == "streaming_moments":
            for area, heading in AREAS.items():
                part = {name: module for name, module in own.items() if _area(module) == area}
                yield f"api_package_{area or 'base'}.rst", _api_page(package, heading, part)
            continue
        others = sorted(exports.keys() - own.keys())
        text = _api_page(package, title, own, others)
        if package.endswith("synthetic"):
            text += "".join(_synthetic(package, module) for module in SYNTHETIC)
        yield f"api_{package.removeprefix('streaming_moments.').replace('.', '_')}.rst", text


def exports_of_package(package: str) -> dict[str, str]:
    """Exported names and the modules that define them, by name."""
    import_module(package)
    return dict(sorted(exports_of(package).items()))


def _area(module: str) -> str:
    area = module.split(".")[1]
    return area if area in AREAS else ""


def _api_page(
    package: str, title: str, own: Mapping[str, str], others: list[str] | None = None
) -> str:
    lines = [title, "=" * len(title), "", f"Import these names from `{package}`.", ""]
    if others:
        named = ", ".join(f"``{name}``" for name in others)
        lines += [f"Also exported here, and described with the package that defines them: {named}."]
    for name in own:
        lines += ["", name, "-" * len(name), "", *_directive(package, name)]
    return "\n".join(lines) + "\n"


def _synthetic(package: str, module: str) -> str:
    full = f"{package}.{module}"
    loaded = import_module(full)
    lines = ["", f"``{full}``", "-" * (len(full) + 4), ""]
    for name, value in vars(loaded).items():
        if getattr(value, "__module__", "") == full and not name.startswith("_"):
            lines += [*_directive(full, name), ""]
    return "\n".join(lines) + "\n"


def _directive(package: str, name: str) -> list[str]:
    value = getattr(import_module(package), name)
    if isinstance(value, type):
        return [
            f".. autoclass:: {package}.{name}",
            "   :members:",
            "   :inherited-members:",
        ]
    if isinstance(value, types.FunctionType) or hasattr(value, "__wrapped__"):
        return [f".. autofunction:: {package}.{name}"]
    if isinstance(value, types.ModuleType):
        return [f"Module ``{value.__name__}``: {(value.__doc__ or '').strip().splitlines()[0]}"]
    if isinstance(value, Mapping):
        keys = ", ".join(f"``{key}``" for key in value)
        return [f".. py:data:: {package}.{name}", "", f"   Keys: {keys}."]
    return [f".. py:data:: {package}.{name}", "", f"   A ``{type(value).__name__}``."]


def commands_page() -> str:
    """All commands with their arguments and options."""
    from streaming_moments.pipelines.command_line.every_command import cli

    context = click.Context(cli, info_name="streaming-moments")
    lines = ["# Command line", "", "Each command prints the same with `--help`.", ""]
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        lines += _command(name, command, context, "##")
        for part, own in getattr(command, "commands", {}).items():
            inner = click.Context(command, info_name=name, parent=context)
            lines += _command(f"{name} {part}", own, inner, "###")
    return "\n".join(lines) + "\n"


def _command(name: str, command: Any, parent: click.Context, heading: str) -> list[str]:
    context = click.Context(command, info_name=name.split()[-1], parent=parent)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f"{heading} {name}", "", _prose(command.help), ""]
    lines += ["```text", f"streaming-moments {name} {usage}", "```", ""]
    if isinstance(command, GroupedCommand):
        for section, records in command.sections(context).items():
            lines += [f"| {_cell(section)} | meaning |", "| --- | --- |"]
            lines += [f"| {_code(flags)} | {_cell(told)} |" for flags, told in records]
            lines.append("")
        lines += ["Examples:", "", "```bash", *command.examples, "```", ""]
    return lines


def http_page() -> str:
    """All calls of the service, from its OpenAPI document."""
    from streaming_moments.pipelines.service.http.openapi import calls_of, openapi_document
    from streaming_moments.storage.inbox.records import RecordShape, text_field

    shape = RecordShape((text_field("text"),))
    document = openapi_document(shape, tokens=True, version=__version__, texts=True)
    lines = [
        "# HTTP",
        "",
        "The service answers these calls. A running service lists them at `/docs` for people and",
        "at `/v1/openapi.json` for machines. Refusals are problem details (RFC 9457).",
        "",
    ]
    for method, path, operation in calls_of(document):
        lines += [f"## {method} {_prose(path)}", "", _prose(operation["summary"]), ""]
        if "description" in operation:
            lines += [_prose(operation["description"]), ""]
        if operation["parameters"]:
            lines += ["| parameter | in | meaning |", "| --- | --- | --- |"]
            lines += [
                f"| {_code(one['name'])} | {one['in']} | {_cell(one['description'])} |"
                for one in operation["parameters"]
            ]
            lines.append("")
        if "requestBody" in operation:
            types_taken = ", ".join(map(_code, operation["requestBody"]["content"]))
            lines += [f"Body: {types_taken}.", ""]
        answers = ", ".join(
            f"{_code(status)} {_prose(answer['description']).rstrip('.')}"
            for status, answer in operation["responses"].items()
        )
        lines += [f"Answers: {answers}.", ""]
    return "\n".join(lines) + "\n"


def metrics_page() -> str:
    """All metrics, by their names and help in Prometheus' format."""
    from streaming_moments.pipelines.reports.metrics import RunMetrics, metrics_registry
    from streaming_moments.pipelines.service.gauges import LIVE, Gauges

    numbers = {one.name: 0 for one in fields(RunMetrics)} | {"store": "", "step_seconds": {"": 0}}
    written = [
        (metric.name, metric.documentation, sorted(metric.samples[0].labels))
        for metric in metrics_registry(RunMetrics(**numbers)).collect()
    ]
    served = [(f"streaming_moments_{one.name}", one.says, []) for one in LIVE]
    served += [
        # counters have this ending where they are read
        (metric.name + "_total" * (metric.type == "counter"), metric.documentation, [])
        for metric in Gauges.new().registry.collect()
    ]
    lines = [
        "# Metrics",
        "",
        "All metrics are in the text format of Prometheus. Times are Unix seconds.",
        "",
        "## After a night",
        "",
        "The section `[metrics]` of a night names a file for the text file collector of the node",
        "exporter. Each night replaces the file.",
        "",
        *_metrics(written),
        "## Of the service",
        "",
        "`GET /metrics` answers with these. The metric `streaming_moments_step_failures` has a",
        "label `step`: consecutive failures of each step of the accumulator.",
        "",
        *_metrics(served),
    ]
    return "\n".join(lines) + "\n"


def _metrics(rows: list[tuple[str, str, list[str]]]) -> list[str]:
    lines = ["| metric | labels | meaning |", "| --- | --- | --- |"]
    lines += [
        f"| {_code(name)} | {', '.join(map(_code, labels))} | {_cell(meaning)} |"
        for name, meaning, labels in rows
    ]
    return [*lines, ""]


def configuration_page() -> str:
    """All keys of `nightly` and `serve`, from the dataclasses that check them."""
    from streaming_moments.models.registry import MODELS
    from streaming_moments.pipelines.nightly.config import NightlyConfig
    from streaming_moments.pipelines.service.config import ServiceConfig

    lines = [
        "# Configuration",
        "",
        "`nightly` and `serve` read TOML files. An unknown key is an error that names the nearest",
        'known key. A size is a number of bytes or a text such as `"64MiB"`. A time is a text such',
        'as `"10m"`, `"6h"` or `"30d"`.',
        "",
    ]
    for title, kind in (("Nights", NightlyConfig), ("Service", ServiceConfig)):
        lines += [f"## {title}", ""]
        for section, owner in _sections(kind):
            lines += [f"### {title}: " + (f"`[{section}]`" if section else "top level"), ""]
            lines += [*_keys(owner), ""]
        if kind is NightlyConfig:
            lines += ["### Nights: options of each model in `[refit]`", ""]
            for name, model in MODELS.items():
                lines += [f'`model = "{name}"`:', "", *_keys(model.Options), ""]
    return "\n".join(lines) + "\n"


def _sections(kind: Any) -> Iterator[tuple[str, Any]]:
    hints = typing.get_type_hints(kind)
    yield "", kind
    for one in fields(kind):
        parts = (hints[one.name], *typing.get_args(hints[one.name]))
        owner = next((part for part in parts if is_dataclass(part)), None)
        if owner is not None:
            yield one.name, owner


def _keys(owner: Any) -> list[str]:
    hints = typing.get_type_hints(owner, include_extras=True)
    sections = {name for name, _ in _sections(owner) if name} if is_dataclass(owner) else set()
    lines = ["| key | type | default | meaning |", "| --- | --- | --- | --- |"]
    meanings = _described(owner.__doc__ or "") | _MEANINGS.get(owner.__name__, {})
    for one in fields(owner):
        if one.name in sections or one.name in ("further", "auto"):
            continue
        name, kind = one.name.rstrip("_"), _type_of(hints[one.name])  # `from_` is `from` in TOML
        meaning = one.metadata.get("help") or meanings.get(name, "")
        lines.append(f"| `{name}` | {kind} | {_default(one)} | {_cell(meaning)} |")
    return lines


def _described(docstring: str) -> dict[str, str]:
    """Meaning of each key by a docstring, of numpydoc or of lines `key : meaning`."""
    found: dict[str, str] = {}
    numpydoc = re.findall(r"^ {4}([\w, ]+) : [^\n]*\n((?: {8}[^\n]*\n?)+)", docstring, re.M)
    for names, text in numpydoc:
        found |= {name.strip(): " ".join(text.split()) for name in names.split(",")}
    for name, text in re.findall(r"^ {4}(\w+) : ((?:[^\n]|\n {8})+)", docstring, re.M):
        found.setdefault(name, " ".join(text.split()))
    return found


_TYPES = {int: "whole number", float: "number", str: "text", bool: "true or false"}


def _type_of(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        if arguments[0] is int and any("size_of" in repr(one) for one in arguments[1:]):
            return "size"
        return _type_of(arguments[0])
    if origin is typing.Literal:
        return ", ".join(f"`{_toml(one)}`" for one in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type_of(one) for one in arguments if one is not type(None))
    if origin is tuple:
        return f"list of {_type_of(arguments[0])}"
    if origin in (dict, Mapping):
        return "table"
    if hint is timedelta:
        return "time"
    return _TYPES.get(hint, getattr(hint, "__name__", "value"))


def _default(one: Any) -> str:
    # pydantic keeps the factory of a field within its default
    if one.default is not MISSING and not hasattr(one.default, "default_factory"):
        return "none" if one.default is None else f"`{_toml(one.default)}`"
    required = one.default is MISSING and one.default_factory is MISSING
    return "**required**" if required else "empty"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        return _time(value)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if isinstance(value, int) and value >= size and value % size == 0:
            return f'"{value // size}{unit}"'
    return str(value)


def _time(value: timedelta) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        number = value.total_seconds() / length
        if number and number == int(number):
            return f'"{int(number)}{unit}"'
    return f'"{value.total_seconds():g}s"'


def _code(text: str) -> str:
    return "`" + " ".join(str(text).split()).replace("|", "\\|") + "`"


def _prose(text: str | None) -> str:
    """Text of help as Markdown: what is between backticks is code, all else is as it stands."""
    parts = re.split(r"(`[^`]*`)", " ".join((text or "").split()))
    return "".join(
        part if part.startswith("`") else re.sub(r"([\\*_<>\[\]{}#$~^])", r"\\\1", part)
        for part in parts
    )


def _cell(text: str) -> str:
    return _prose(text).replace("|", "\\|")
