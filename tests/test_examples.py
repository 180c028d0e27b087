"""The examples of docstrings run, also those of the folders beside the package's own."""

import doctest
import pkgutil
from importlib import import_module

import pytest

from streaming_moments import pipelines, storage


def modules():
    for package in (storage, pipelines):
        yield package.__name__
        yield from (
            one.name for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        )


@pytest.mark.parametrize("name", sorted(modules()))
def test_the_examples_of_a_module_run(name):
    found = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.failed == 0


def test_there_are_examples():
    names = list(modules())
    finder = doctest.DocTestFinder(exclude_empty=True)
    examples = sum(len(one.examples) for name in names for one in finder.find(import_module(name)))
    assert len(names) > 250
    assert examples > 500
