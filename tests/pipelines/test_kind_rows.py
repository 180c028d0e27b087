"""Every kind of statistics has a row in each table of kinds, and every option some that take it."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.models.registry import models_of
from streaming_moments.pipelines.jobs.create import CountingOptions, PilotOptions
from streaming_moments.pipelines.jobs.kinds.create_kinds import require_options_of
from streaming_moments.pipelines.jobs.kinds.options import KindOptions, option_of
from streaming_moments.pipelines.jobs.kinds.registry import KIND_JOBS
from streaming_moments.pipelines.reports.kinds.registry import KIND_REPORTS
from streaming_moments.statistics import registry as statistics
from streaming_moments.statistics.registry import KINDS
from streaming_moments.storage.kinds.registry import STORED_KINDS

OPTIONS = {
    one.name: options
    for options in (KindOptions, CountingOptions, PilotOptions)
    for one in fields(options)
}
# What each kind takes, or refuses in words of its own.
OF_ALL = {
    *("kind", "format", "text_column", "categories", "date_column", "date_pattern", "halves"),
    *("pilot_documents", "seed"),
}
NAMES = {
    "languages": ("en",),
    "stop_words": ("a",),
    "tokeniser": "regex:[a-z]+",
    "phrases": ("2",),
    "columns": "a,b",
    "counts_column": "counts",
    "ids_column": "ids",
}


@pytest.mark.parametrize(
    "rows", [STORED_KINDS, KIND_JOBS, KIND_REPORTS], ids=["storage", "jobs", "reports"]
)
def test_every_kind_has_a_row_of_its_own(rows):
    assert rows.keys() == KINDS.keys()
    assert all(KINDS[kind] is row.foundation for kind, row in rows.items())


def test_the_table_of_statistics_names_the_tables_of_the_layers_above():
    root = Path(statistics.__file__).parents[2]
    told = {path for path in statistics.__doc__.split("`") if path.endswith("registry.py")}
    assert told == {
        path.relative_to(root).as_posix()
        for path in root.glob("[sp]*/**/kinds/registry.py")
        if path.parts[len(root.parts)] in ("storage", "pipelines")
    }


def test_every_kind_has_a_model():
    assert all(models_of(kind) for kind in KINDS)


def test_every_option_of_create_is_of_all_kinds_or_of_some():
    of_some = frozenset().union(*(one.takes for one in KIND_JOBS.values()))
    assert of_some | OF_ALL == OPTIONS.keys()
    assert not of_some & OF_ALL


@pytest.mark.parametrize("kind", KINDS)
def test_what_can_be_made_anew_says_how(kind):
    assert (KIND_JOBS[kind].redraw is not None) == KINDS[kind].can_rebase


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_refuses_by_name_what_it_does_not_take(kind):
    for name in OPTIONS.keys() - OF_ALL - KIND_JOBS[kind].takes:
        given = {KindOptions: KindOptions(kind)}
        given |= {options: options() for options in (CountingOptions, PilotOptions)}
        changed = OPTIONS[name]
        given[changed] = replace(given[changed], **{name: another_value(changed, name)})
        [own] = [one for one in fields(changed) if one.name == name]
        flag = f"create --{option_of(own).replace('_', '-')}"
        with pytest.raises(InvalidInput, match=f"kind {kind} does not use `{flag}`; remove it"):
            require_options_of(*given.values())


def another_value(options, name):
    """A value of an option, of its type, that is not its default."""
    [one] = [one for one in fields(options) if one.name == name]
    others = [value for value in one.metadata.get("choices", ()) if value != one.default]
    if others or name in NAMES:
        return others[0] if others else NAMES[name]
    if isinstance(one.default, bool):
        return not one.default
    if isinstance(one.default, float):
        return one.default / 2
    return 1 + (one.default or 0)
