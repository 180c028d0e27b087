"""How often the product asks which kind of statistics, or whether a model has topics."""

import ast
from pathlib import Path

import pytest

from streaming_moments.statistics.kinds import KINDS as FOUNDATIONS

ROOT = Path(__file__).parent.parent
KINDS = {foundation.__name__ for foundation in FOUNDATIONS.values()}
# Each may fall, and none may rise: a member of a family says itself what only it can.
MOST_KINDS, MOST_TOPICS = 1, 5


def sources():
    for room in ("streaming_moments", "storage", "pipelines"):
        for path in sorted((ROOT / room).rglob("*.py")):
            inside = path.relative_to(ROOT).as_posix()
            # where kinds are at home, and a family is
            if not inside.startswith("streaming_moments/statistics/") and "/kinds/" not in inside:
                yield inside, ast.parse(path.read_text())


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
