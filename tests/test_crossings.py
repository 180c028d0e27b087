"""How often the product asks for a kind of statistics or for topics, and hides arguments."""

import ast
from pathlib import Path

import pytest

from streaming_moments.statistics.registry import KINDS as FOUNDATIONS

ROOT = Path(__file__).parent.parent
KINDS = {foundation.__name__ for foundation in FOUNDATIONS.values()}
# Each may fall, and none may rise: a member of a family says itself what only it can.
MOST_KINDS, MOST_TOPICS = 1, 5


def sources(everywhere=False):
    for room in ("streaming_moments", "storage", "pipelines"):
        for path in sorted((ROOT / room).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            # where kinds are at home, and a family is
            at_home = name.startswith("streaming_moments/statistics/") or "/kinds/" in name
            if everywhere or not at_home:
                yield name, ast.parse(path.read_text())


def names(node):
    found = (getattr(one, "id", getattr(one, "attr", None)) for one in ast.walk(node))
    return set(filter(None, found))


def asked(node, wanted):
    """Whether a node compares with one of some classes, or asks whether it is one."""
    if isinstance(node, ast.Compare):
        return bool(names(node) & wanted)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("isinstance", "issubclass") and bool(names(node.args[1]) & wanted)
    return False


def asked_by_name(node):
    """Whether a node compares what is called a kind with the name of one."""
    if not isinstance(node, ast.Compare):
        return False
    texts = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}
    return bool(texts & FOUNDATIONS.keys()) and "kind" in names(node) | texts


def crossings(wanted, also=lambda node: False):
    return [
        f"{path}:{node.lineno}"
        for path, tree in sources()
        for node in ast.walk(tree)
        if asked(node, wanted) or also(node)
    ]


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ('store.kind == "counts"', True),
        ('model.kind not in ("views", "edges")', True),
        ('facts["kind"] == "vectors"', True),
        ('"sequences" != kind', True),
        ("model.kind == foundation.kind", False),
        ('dtype.kind == "f"', False),
        ('KINDS["counts"]', False),
    ],
)
def test_comparisons_of_kinds_by_name_are_found(line, is_one):
    assert any(asked_by_name(node) for node in ast.walk(ast.parse(line))) is is_one


def test_no_more_places_ask_for_the_kind_than_before():
    found = crossings(KINDS, asked_by_name)
    assert len(found) <= MOST_KINDS, found


def test_no_more_places_ask_whether_there_are_topics_than_before():
    found = crossings({"TopicModel"})
    assert len(found) <= MOST_TOPICS, found


def tuples_named(function):
    """Names that a function gives a tuple to; not in inner functions."""
    for node in inside(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                given = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    given = list(zip(target.elts, node.value.elts, strict=False))
                for name, value in given:
                    if isinstance(name, ast.Name) and isinstance(value, ast.Tuple):
                        yield name.id


def inside(function):
    """Nodes of a function, without those of functions in it."""
    for node in ast.iter_child_nodes(function):
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from inside(node)


def splatted(tree):
    """Lines of calls with arguments `*name` of a tuple that the same function makes."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            names = set(tuples_named(function))
            for call in inside(function):
                for argument in call.args if isinstance(call, ast.Call) else ():
                    made = isinstance(argument, ast.Starred) and argument.value
                    if isinstance(made, ast.Name) and made.id in names:
                        yield call.lineno


def test_no_call_hides_its_arguments_in_a_tuple():
    """Arguments stand in the call, by keyword where their order says little."""
    found = [f"{path}:{line}" for path, tree in sources(everywhere=True) for line in splatted(tree)]
    assert not found


def test_a_tuple_that_is_splatted_is_found():
    hidden = "def f(a):\n    told = a, 1\n    g(*told)\n    g(*a)\n    one, told = 1, (2, 3)\n"
    assert list(splatted(ast.parse(hidden))) == [3]
    assert list(splatted(ast.parse("def f(told):\n    g(*told)\n"))) == []
