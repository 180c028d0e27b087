"""Errors of jobs name arguments and calls to callers in Python, and options to commands."""

import inspect
import pickle
import warnings

import pytest

from streaming_moments import CountingOptions, PilotOptions, Store, TopicModel, create_store
from streaming_moments.deprecation import Deprecated
from streaming_moments.errors import InvalidInput, NotIdentifiable, ShardError, StoreError
from streaming_moments.pipelines.interface.reading import argument_of
from streaming_moments.pipelines.interface.remedies import METHODS, of_stores
from streaming_moments.printing.remedies import in_memory, in_words, of_arguments, remedy

TEXTS = ["the sea and a ship in the port", "a law of the tax on trade"] * 20
FEW = PilotOptions(min_documents=2)


@pytest.mark.parametrize(
    ("text", "of_command", "of_python"),
    [
        (
            "{create.passage_words}",
            "`create --passage-words`",
            "`CountingOptions(passage_words=...)`",
        ),
        (
            "{create.language:none}",
            "`create --language none`",
            '`CountingOptions(languages=("none",))`',
        ),
        ("{create.bad_rows:skip}", "`create --bad-rows skip`", '`KindOptions(bad_rows="skip")`'),
        ("{create.no_halves}", "`create --no-halves`", "`CountingOptions(halves=False)`"),
        ("{create.max_topics}", "`create --max-topics`", "`create_store(max_topics=...)`"),
        (
            "{update.include_forgotten}",
            "`update --include-forgotten`",
            "`update(include_forgotten=True)`",
        ),
        ("{refit}", "`streaming-moments refit`", "`store.refit(..., name='first')`"),
        ("{refit.model}", "`refit --model`", "`store.refit_as(...)`"),
        ("{transform.replace}", "`transform --replace`", "`transform(replace=True)`"),
        # of `transform`; `update` has one that only commands have
        ("{update.replace}", "`update --replace`", "`streaming-moments update --replace`"),
        ("{option.memory}", "--memory", "memory"),
        (
            "{option.max_document_bytes}",
            "--max-document-bytes",
            "--max-document-bytes of the command line",
        ),
        ("{rebase.halves}", "`rebase --halves`", "`streaming-moments rebase --halves`"),
        (
            "{create.min_documents:1}",
            "`create --min-documents 1`",
            "`PilotOptions(min_documents=1)`",
        ),
        ("a higher --memory-limit", "a higher --memory-limit", "a higher --memory-limit"),
    ],
)
def test_options_are_called_as_the_door_calls_them(text, of_command, of_python):
    error = InvalidInput("it is {wrong}", text)
    assert str(error) == f"it is {{wrong}}; {of_command}"
    assert error.said(of_stores) == f"it is {{wrong}}; {of_python}"


def test_errors_within_errors_and_in_other_processes_speak_with_their_door():
    shard = ShardError(
        "a.txt", "line {1} is long", remedy("raise {option.memory} by {most}", most=2)
    )
    whole = pickle.loads(pickle.dumps(StoreError(remedy("{error}", error=shard), "run {refit}.")))
    assert str(whole) == (
        "a.txt: line {1} is long; raise --memory by 2; run `streaming-moments refit`."
    )
    whole.spell = of_stores
    assert str(pickle.loads(pickle.dumps(whole))) == (
        "a.txt: line {1} is long; raise memory by 2; run `store.refit(..., name='first')`."
    )
    assert shard.reason == "line {1} is long; raise --memory by 2"


def test_arguments_that_messages_name_are_those_of_methods():
    for name, arguments in METHODS.items():
        assert {*map(argument_of, arguments)} <= {
            *inspect.signature(getattr(Store, name)).parameters
        }


def test_what_has_no_store_names_its_own_arguments():
    larger = remedy("ask for at most {most}, or raise the limit by {rebase.max_topics:9}", most=3)
    assert in_words(in_memory, larger).endswith(" 3, or raise the limit by max_components=9")
    assert in_words(of_arguments, larger).endswith("by max_topics=9 of Basis.from_pilot")


def test_errors_of_stores_name_arguments_and_methods():
    with pytest.raises(InvalidInput, match=r"lower the minimum \(`PilotOptions\(min_documents="):
        create_store("memory://remedies-none", ["sea law"] * 2, source="t")
    store = create_store("memory://remedies", TEXTS, source="t", max_topics=2, pilot=FEW)
    with pytest.raises(StoreError, match=r"`store\.refit\(\.\.\., name='first'\)`"):
        store.topics()
    store = store.update(TEXTS, source="t")
    with pytest.raises(
        InvalidInput, match=r"have no dates.*`CountingOptions\(date_column=\.\.\.\)`"
    ):
        store.shares_over_time()
    with pytest.raises(NotIdentifiable, match=r"limit by a larger `create_store\(max_topics="):
        store.refit(30)
    whole = CountingOptions(halves=False)
    store = create_store(
        "memory://remedies-whole", TEXTS, source="t", pilot=FEW, counting=whole, max_topics=2
    )
    with pytest.raises(InvalidInput, match="give a number to n_topics"):
        store.update(TEXTS, source="t").refit("predict")


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("num_topics", "n_topics"),
        ("n_components", "n_topics"),
        ("random_state", "seed"),
        ("nam", "name"),
    ],
)
def test_other_names_of_an_argument_are_refused_with_its_own(name, instead):
    store = create_store("memory://remedies-names", TEXTS, source="t", max_topics=2, pilot=FEW)
    with pytest.raises(TypeError, match=rf"^Store\.refit has no argument {name}; give {instead}$"):
        store.refit(**{name: 2})


def test_the_old_name_of_the_number_of_topics_warns_at_the_line_of_the_call():
    store = create_store("memory://remedies-old", TEXTS, source="t", max_topics=2, pilot=FEW)
    store = store.update(TEXTS, source="t")
    with pytest.warns(Deprecated, match=r"^Store\.refit\(topics=\) is .* use n_topics$") as told:
        assert store.refit(topics=2).model.n_topics == 2
    with pytest.warns(Deprecated, match=r"^Store\.select\(topics=\) is") as compared:
        store.select(topics=[2])
    with pytest.warns(Deprecated, match=r"^Store\.refit_as\(topics=\) is") as fitted:
        assert store.refit_as(TopicModel, topics=2).n_topics == 2
    assert {one.filename for one in (told[0], compared[0], fitted[0])} == {__file__}
    with pytest.raises(TypeError, match="no argument topics; give n_topics"):
        store.refit(topics=2, n_topics=2)
    # one topic of two texts that repeat: a direction of the moments is at right angles to the mean
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert store.select([1]).best.n_topics == 1
