"""What goes warns at the line that uses it, for a release, and then goes."""

import ast
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from packaging.version import Version

import streaming_moments
from streaming_moments.deprecation import (
    Deprecated,
    renamed_arguments,
    renamed_fields,
    warn_deprecated,
)

ROOT = Path(__file__).parents[2]


def old(value):
    warn_deprecated("old", "0.3.0", "0.4.0", "new")
    return value


def test_the_line_that_uses_it_is_named():
    with pytest.warns(Deprecated, match=r"^old is deprecated since 0\.3\.0 .* use new$") as told:
        assert old(3) == 3
    assert told[0].filename == __file__


def test_users_see_it_in_their_own_code_as_any_deprecation():
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        with pytest.raises(DeprecationWarning):
            old(3)


@renamed_fields("0.3.0", "0.4.0", size="n_rows", wide="n_columns")
@dataclass(frozen=True)
class Table:
    n_rows: int
    n_columns: int = 1


def test_a_renamed_field_is_given_and_read_by_its_old_name_with_a_warning():
    with pytest.warns(Deprecated, match=r"^Table\(size=\) is .* use n_rows$") as told:
        table = Table(size=3)
    assert table == Table(3)
    with pytest.warns(Deprecated, match=r"^Table\.size is .* use n_rows$") as read:
        assert table.size == 3
    assert (told[0].filename, read[0].filename) == (__file__, __file__)
    with pytest.warns(Deprecated) as both:
        assert Table(size=3, wide=2) == Table(3, 2)
    assert len(both) == 2


def test_a_renamed_field_is_replaced_by_its_old_name():
    with pytest.warns(Deprecated, match="Table"):
        assert replace(Table(3, 2), wide=5) == Table(3, 5)


def test_the_new_names_warn_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert replace(Table(3), n_columns=2).n_columns == 2


def test_a_renamed_field_is_given_once():
    with pytest.warns(Deprecated), pytest.raises(TypeError, match="multiple values"):
        Table(3, size=3)


@renamed_arguments("0.3.0", "0.4.0", size="n_rows")
def doubled(n_rows):
    return 2 * n_rows


def test_a_renamed_argument_is_given_by_its_old_name_with_a_warning():
    with pytest.warns(Deprecated, match=r"^doubled\(size=\) is .* use n_rows$") as told:
        assert doubled(size=3) == 6
    assert told[0].filename == __file__
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        doubled(size=3, n_rows=3)


# the arguments of what says that something goes
SAID_BY = {
    "warn_deprecated": ("what", "since", "removed_in"),
    "renamed_fields": ("since", "removed_in"),
    "renamed_arguments": ("since", "removed_in"),
}


def overdue(source, version):
    """What a file still warns of though the version that lacks it is there; or goes at once."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in SAID_BY:
            told = dict(zip(SAID_BY[node.func.id], node.args, strict=False))
            told |= {one.arg: one.value for one in node.keywords}
            since, gone = (Version(ast.literal_eval(told[one])) for one in ("since", "removed_in"))
            if gone <= version or gone.release[:2] <= since.release[:2]:
                yield ast.unparse(told.get("what", node))


def test_nothing_stays_beyond_its_release():
    version = Version(streaming_moments.__version__)
    found = {
        str(path.relative_to(ROOT)): late
        for folder in ("streaming_moments", "storage", "pipelines")
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "deprecation.py" and (late := [*overdue(path.read_text(), version)])
    }
    assert found == {}


@pytest.mark.parametrize(("version", "late"), [("0.3.9", []), ("0.4.0", ["'old'"])])
def test_what_is_overdue_is_found(version, late):
    call = "warn_deprecated('old', '0.3.0', removed_in='0.4.0', instead='new')"
    assert [*overdue(call, Version(version))] == late
    assert [*overdue(call.replace("0.4.0", "0.3.1"), Version("0.1"))] == ["'old'"]
    renamed = "renamed_fields('0.3.0', '0.4.0', old='new')"
    assert [*overdue(renamed, Version(version))] == [renamed] * len(late)
