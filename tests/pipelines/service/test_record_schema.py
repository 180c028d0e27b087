"""Which fields a document of a store has, and of which stores none are taken."""

from types import SimpleNamespace

import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.service.limits import LimitsSection
from streaming_moments.pipelines.service.record_schema import shape_of, takes_texts
from streaming_moments.storage.counting.symbols.sequences import SequencesForm
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.counting.views import ViewsForm
from streaming_moments.storage.dates import NO_PATTERN, DateSource
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

ASKED = ("url", "kind", "form", "dates", "foundation")


@pytest.fixture
def changed(archived):
    """A store as 0.2.0 wrote it, of which some is otherwise."""

    def of(name, **otherwise):
        store = MomentStore.open(str(archived(name)))
        asked = *ASKED, "policy" if store.kind == "counts" else "reading"
        return SimpleNamespace(**{one: getattr(store, one) for one in asked} | otherwise)

    return of


def fields(store):
    """The type of each field, as JSON Schema has it."""
    counted = shape_of(store, LimitsSection()).counted
    return {one.name: one.schema.get("type") for one in counted}


@pytest.mark.parametrize(
    ("name", "otherwise", "told"),
    [
        ("night", {"form": ShardFormat("parquet")}, "was created with --format parquet"),
        ("night", {"kind": "seas"}, "counts seas, which the service does not accept"),
        (
            "night",
            {"dates": DateSource(pattern="%Y/%m/%d")},
            "finds days in URLs by '%Y/%m/%d'.* without --date-pattern",
        ),
        ("night", {"policy": None}, "counts token ids of LDA-C.* create a store with --ids-column"),
        (
            "sequences",
            {"reading": SequencesForm("words", ("walk", "at", "step")).to_json()},
            r"continue from record to record \(walk, at, step\)",
        ),
    ],
)
def test_a_store_whose_documents_cannot_come_one_by_one_is_named(changed, name, otherwise, told):
    store = changed(name, **otherwise)
    with pytest.raises(InvalidInput, match=f"^{store.url} .*{told}"):
        shape_of(store, LimitsSection())


def test_json_lines_and_no_days_of_urls_are_taken(changed):
    for otherwise in (
        {"form": ShardFormat("jsonl")},
        {"dates": DateSource(pattern=NO_PATTERN)},
        {"dates": DateSource(column="day")},
    ):
        assert fields(changed("night", **otherwise)) == {"text": "string"}


def test_fields_are_of_the_columns_of_the_store(changed):
    views = ViewsForm.parse(["title:text", "author", "year"]).to_json()
    found = fields(changed("views", reading=views))
    assert list(found) == ["title", "author", "year"]
    assert found["title"] == ["string", "null"]
    assert found["author"] == found["year"] != found["title"]
    listed = SequencesForm("words", ("steps",)).to_json()
    assert fields(changed("sequences", reading=listed)) == {"steps": "array"}
    assert fields(changed("sequences")) == {"text": "string"}
    assert fields(changed("vectors")) == {"vector": "array"}


def test_documents_are_texts_where_words_of_a_text_are_counted(changed):
    night = changed("night")
    assert takes_texts(night) is True
    for form in (ShardFormat(ids_column="ids"), ShardFormat(categories=("a", "b"))):
        assert takes_texts(changed("night", form=form)) is False
    assert takes_texts(changed("night", policy=None)) is False
    assert takes_texts(changed("sequences", policy=TokenPolicy())) is False
