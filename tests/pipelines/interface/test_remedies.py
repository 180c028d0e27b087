"""Messages of jobs name arguments and calls to callers in Python, and options to commands."""

import inspect

import pytest

from streaming_moments import CountingOptions, PilotOptions, Store, create_store
from streaming_moments.errors import InvalidInput, NotIdentifiable, StoreError
from streaming_moments.pipelines.interface.remedies import METHODS, said_of_stores
from streaming_moments.remedies import IN_MEMORY, OF_STATISTICS

TEXTS = ["the sea and a ship in the port", "a law of the tax on trade"] * 20
FEW = PilotOptions(min_documents=2)


@pytest.mark.parametrize(
    ("of_command", "of_python"),
    [
        ("cut it (`create --passage-words`)", "cut it (`CountingOptions(passage_words=...)`)"),
        ("by `create --language none`", 'by `CountingOptions(languages=("none",))`'),
        ("or count by `create --bad-rows skip`", 'or count by `KindOptions(bad_rows="skip")`'),
        ("lower the --vocabulary-size", "lower the vocabulary_size of PilotOptions"),
        ("without --no-halves", "without CountingOptions(halves=False)"),
        (
            "`streaming-moments update --include-forgotten`",
            "`update(include_forgotten=True)`",
        ),
        ("run `streaming-moments refit`", "run `store.refit(...)`"),
        ("give --model hmm", "give the class of model hmm to store.refit_as"),
        # of `transform`; `update` has one that only commands have
        ("another folder or --replace", "another folder or replace=True"),
        ("count it with --replace", "count it with --replace of the command line"),
        ("raise --max-document-bytes", "raise --max-document-bytes of the command line"),
        ("run `streaming-moments rebase --halves`", "run `streaming-moments rebase --halves`"),
        ("a higher --memory-limit of the workers", "a higher --memory-limit of the workers"),
        ("a range such as 2--5", "a range such as 2--5"),
    ],
)
def test_options_become_arguments(of_command, of_python):
    assert said_of_stores(of_command) == of_python
    # an error can pass through two functions that users call
    assert said_of_stores(of_python) == of_python


def test_arguments_that_messages_name_are_those_of_methods():
    for name, arguments in METHODS.items():
        assert {*arguments} <= {*inspect.signature(getattr(Store, name)).parameters}


def test_what_has_no_store_gives_no_advice_on_stores():
    told = "ask for at most 3, or create a store with a larger --max-topics"
    assert IN_MEMORY.said(told) == "ask for at most 3, or give a larger max_components"
    assert OF_STATISTICS.said(told).endswith("give a larger max_topics of Basis.from_pilot")
    told = "there are no rows yet; run `streaming-moments update` first"
    assert IN_MEMORY.said(told) == "there are no rows yet; give more"


def test_errors_of_stores_name_arguments_and_methods():
    with pytest.raises(InvalidInput, match=r"lower the minimum \(`PilotOptions\(min_documents="):
        create_store("memory://remedies-none", ["sea law"] * 2, source="t")
    store = create_store("memory://remedies", TEXTS, source="t", max_topics=2, pilot=FEW)
    with pytest.raises(StoreError, match=r"`store\.refit\(name=\.\.\.\)`"):
        store.topics()
    store = store.update(TEXTS, source="t")
    with pytest.raises(NotIdentifiable, match="a store with a larger max_topics$"):
        store.refit(30)
    whole = CountingOptions(halves=False)
    store = create_store(
        "memory://remedies-whole", TEXTS, source="t", pilot=FEW, counting=whole, max_topics=2
    )
    with pytest.raises(InvalidInput, match="give a number to topics"):
        store.update(TEXTS, source="t").refit("predict")


@pytest.mark.parametrize(
    ("name", "instead"),
    [("n_topics", "topics"), ("n_components", "topics"), ("random_state", "seed"), ("nam", "name")],
)
def test_other_names_of_an_argument_are_refused_with_its_own(name, instead):
    store = create_store("memory://remedies-names", TEXTS, source="t", max_topics=2, pilot=FEW)
    with pytest.raises(TypeError, match=rf"^Store\.refit has no argument {name}; give {instead}$"):
        store.refit(**{name: 2})
