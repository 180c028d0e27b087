"""Forged JSON of a store, with seals and hashes that fit: told in one line, or harmless."""

import copy
import hashlib
import json
import random
import shutil
from collections import Counter

import pytest
from forgery import reforged, resealed

from streaming_moments.errors import StoreError, StreamingMomentsError
from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.log.layout import commit_file
from streaming_moments.storage.operations.growth import grow
from streaming_moments.storage.operations.history import difference, tag
from streaming_moments.storage.operations.labels import label
from streaming_moments.storage.store.store import MomentStore
from streaming_moments.testing.small_store import append, compact, create, forget, model_of

DEEP = 100_000
VALUES = (
    None,
    True,
    -5,
    0,
    2**63,
    10**30,
    1.5,
    1e308,
    "",
    "x" * 1000,
    "\x1b[31mred\nline",
    "../../etc/passwd",
    "2026-13-45",
    "f" * 32,
    "0" * 64,
    [],
    [1],
    {},
    {"a": [{}]},
    json.loads("[" * 150 + "]" * 150),
)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    root = tmp_path_factory.mktemp("forged") / "store"
    store = compact(append(append(create(root), {"a": 1}), {"b": 2}))
    store = forget(append(store, {"c": 3}), {"a": 1})
    store = tag(store.save_model("m", model_of(0)), "live", "m")
    store = label(store, 0, "ships")
    grow(store.append(None, skipped=[("bad", "not UTF-8")]), ["steam"])
    return root


@pytest.fixture
def root(template, tmp_path):
    shutil.copytree(template, tmp_path / "store")
    return tmp_path / "store"


def sealed_files(root):
    """Each kind of JSON, by name."""
    store = MomentStore.open(str(root))
    commit, lineage = store.commit, store.commit.lineage
    return {
        "format": "format.json",
        "commit": commit_file(store.version),
        "segment": f"segments/{commit.segments[0].id}/manifest.json",
        "model": f"models/m/{commit.models['m'].id}/manifest.json",
        "vocabulary": f"vocabulary/{lineage.vocabulary}.json",
        "basis": f"basis/{lineage.basis}/basis.json",
        "reached": "reached.json",
    }


def places(content, place=()):
    """Every key and index of JSON, as the way to it."""
    found = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in found:
        yield (*place, key)
        if isinstance(value, dict | list):
            yield from places(value, (*place, key))


def forged_at_random(content, rng):
    """The content with one value changed, or without it, or one key renamed; and what was done."""
    content = copy.deepcopy(content)
    *way, last = rng.choice(list(places(content)))
    part = content
    for key in way:
        part = part[key]
    act = rng.choice(["change", "change", "change", "change", "drop", "rename"])
    if act == "change":
        part[last] = rng.choice(VALUES)
    elif act == "drop" or not isinstance(part, dict):
        part.pop(last)
    else:
        part["\x1b[2J\n"] = part.pop(last)
    return content, f"{act} {[*way, last]}"


def used(root):
    """Open the store and ask it everything."""
    store = MomentStore.open(str(root))
    yield "opened"
    assert isinstance(store.verify(), list)
    store.load()
    assert [store.vocabulary, store.policy, store.form, store.dates]
    assert [*store.ledger(), *store.log(), store.load_model("m")]
    difference(store, 0, store.version)
    assert (store.commit.documents, store.commit.tokens, store.commit.shards) >= (0, 0, 0)
    yield "used"


def outcome_of(root):
    """How far the store goes, and what is wrong with how it ends."""
    reached = "refused"
    try:
        for step in used(root):
            reached = step
    except StreamingMomentsError as error:
        told = str(error)
        if "\n" in told or "\x1b" in told or len(told) > 2000:
            return reached, f"not one plain line: {told!r}"
        if reached == "refused" and not isinstance(error, StoreError):
            return reached, f"no StoreError: {error!r}"
    except Exception as error:
        return reached, repr(error)[:300]
    return reached, ""


def test_whatever_json_says_the_store_says_what_is_wrong(template, tmp_path, campaigns):
    rng = random.Random(campaigns.seed)
    files, tried = sealed_files(template), campaigns.size(60, 3000)
    held, outcomes = 0, Counter()
    for number in range(tried):
        root = tmp_path / "store"
        shutil.copytree(template, root)
        kind = rng.choice([*files])
        done = []

        def change(content, done=done):
            forged, what = forged_at_random(content, rng)
            done.append(what)
            return forged

        if kind in ("segment", "model"):
            reforged(root, files[kind], change)
        else:
            resealed(root / files[kind], change)
        reached, wrong = outcome_of(root)
        outcomes[reached] += 1
        held += not wrong
        if wrong:
            print(f"{number} {kind}: {done[0]}, {reached}: {wrong}")
        shutil.rmtree(root)
    note = ", ".join(f"{times} {outcome}" for outcome, times in outcomes.most_common())
    campaigns.record("forged values in JSON", tried, held, note)


def raw(body):
    """Sealed bytes that no writer would write."""
    whole = seal({"x": 1})
    neck = whole.index(b"\n") - 1
    digest = hashlib.sha256(body).hexdigest().encode()
    return whole[: len(b'{"sha256": "')] + digest + whole[neck - 1 : neck + 2] + body


@pytest.mark.parametrize(
    "body",
    [
        b'"x": ' + b"[" * DEEP + b"]" * DEEP + b"}",
        b'"x": ' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
        b'"x": NaN}',
        b'"x": -Infinity}',
        b'"x": ' + b"9" * 5000 + b"}",
        b'"x": "\xff\xfe"}',
        b'"x": "\\ud800"}',
        b'"x": 1',
        b'"x": 1} trailing',
        b"}",
        b"",
    ],
    ids=lambda body: f"{len(body)} bytes, {body[-9:]!r}",
)
def test_json_that_no_writer_writes_is_damage(root, body):
    for kind, name in sealed_files(root).items():
        if kind not in ("segment", "model"):
            whole = (root / name).read_bytes()
            (root / name).write_bytes(raw(body))
            with pytest.raises(StoreError, match=r"\.json .*(restore|delete|upgrade)"):
                MomentStore.open(str(root)).vocabulary  # noqa: B018
            (root / name).write_bytes(whole)
    assert MomentStore.open(str(root)).verify() == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"documents": -5}, "documents: Input should be greater than or equal to 0"),
        ({"tokens": 2**63}, "tokens: Input should be less than"),
        ({"shards": "1"}, "shards: Input should be a valid integer"),
        ({"largest": True}, "largest: Input should be a valid integer"),
        ({"dates": 5}, "5 are not two days"),
        ({"dates": ["2026-13-01", "2026-01-01"]}, r"dates: .*2026-13-01.* are not two days"),
        ({"sign": 2}, "neither 1 nor -1"),
        ({"words": 3}, "has a vocabulary that the lineage never had"),
    ],
)
def test_impossible_segments_are_refused_on_opening(root, change, told):
    name = sealed_files(root)["commit"]

    def forge(content):
        content["segments"][0] |= change
        return content

    resealed(root / name, forge)
    with pytest.raises(
        StoreError, match=f"{name} is not a valid commit .*{told}.*; restore it from a copy"
    ):
        MomentStore.open(str(root))


@pytest.mark.parametrize("value", [1.0, "1", None, True, -1, [], {"a": 1}, 10**400])
@pytest.mark.parametrize("key", ["format", "min_reader", "min_writer"])
def test_versions_of_a_format_are_whole_numbers(root, key, value):
    resealed(root / "format.json", lambda content: {**content, key: value})
    refused = "upgrade streaming-moments|is not a valid store format|is damaged"
    with pytest.raises(StoreError, match=f"format.json.*({refused})"):
        MomentStore.open(str(root))
