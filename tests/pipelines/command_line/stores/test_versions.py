"""Versions wherever one is asked for; models and documents that a command cannot do with."""

import json

import pytest

from streaming_moments import open_store
from streaming_moments.errors import StoreError


@pytest.fixture(scope="module")
def made(tmp_path_factory, planted):
    """A store of three versions: created, half and all counted."""
    from streaming_moments import create_store
    from streaming_moments.pipelines import PilotOptions

    url = str(tmp_path_factory.mktemp("versions") / "store")
    pilot = PilotOptions(min_documents=2)
    store = create_store(url, planted, source="a", max_topics=3, pilot=pilot)
    store.update(planted[:450], source="a").update(planted[450:], source="b")
    return url


def test_a_version_is_a_number_or_the_latest_or_counted_back(run, made):
    plain = run("diff", made, "1", "2", "--json")
    assert plain[0] == 0
    for before, after in (("1", "latest"), ("-2", "-1"), ("1", "-1"), ("-2", "latest")):
        assert run("diff", made, before, after, "--json") == plain
        assert run("diff", "--json", made, before, after) == plain
    for given, version in (("latest", 2), ("-1", 2), ("-3", 0), ("1", 1)):
        assert (
            json.loads(run("status", made, "--version", given, "--json")[1])["version"] == version
        )
        assert run("verify", made, "--version", given)[1] == f"version {version} is sound\n"
    fitted = run("refit", made, "--version", "-2", "--topics", "2", "--name", "half", "--json")
    assert json.loads(fitted[1])["fitted_version"] == 1
    assert open_store(made, -1).version == 3
    assert open_store(made, -3).version == 1


def test_a_rollback_goes_back_by_the_same_names(run, made, tmp_path):
    from shutil import copytree

    url = str(copytree(made, tmp_path / "copy"))
    latest = open_store(url).version
    code, out, _ = run("rollback", url, "-2")
    assert (code, out) == (0, f"version {latest + 1}: restored version {latest - 1}\n")
    assert open_store(url).snapshot.commit.message == f"rollback to version {latest - 1}"
    # the value of an option may look like a version, and flags stand anywhere
    code, out, _ = run("rollback", url, "--json", "--message", "-1", "-2")
    assert code == 0
    assert open_store(url).snapshot.commit.message == "-1"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("diff", "0", "newest"), "'newest' is not a version; give a number, `latest`, or -1 for"),
        (("diff", "0", "1.5"), "'1.5' is not a version"),
        (("diff", "0", "99"), "has no version 99; it has 0 to "),
        (("diff", "-99", "0"), "has no version -99; it has 0 to "),
        (("status", "--version", "newest"), "'newest' is not a version"),
        (("rollback", "newest"), "'newest' is not a version"),
        (("diff", "0", "1", "--modl", "x"), "No such option '--modl'"),
    ],
)
def test_what_is_no_version_is_said(run, made, arguments, said):
    command, *rest = arguments
    code, _, err = run(command, made, *rest)
    assert (code, said in err) == (2, True), err


def test_no_version_before_the_first_is_there_from_python(made):
    with pytest.raises(StoreError, match="has no version -99; it has 0 to"):
        open_store(made, -99)


def test_a_model_that_is_not_there_is_named(run, tmp_path, planted):
    (tmp_path / "a.txt").write_text("\n".join(planted))
    store = tmp_path / "store"
    run("create", store, tmp_path / "a.txt", "--max-topics", "3", "--min-documents", "2")
    run("update", store, tmp_path / "a.txt")
    for command in (
        ("topics", store, "--model", "nope"),
        ("page", store, "--output", tmp_path / "p.html", "--model", "nope"),
        ("transform", store, tmp_path / "a.txt", "--output", tmp_path / "o", "--model", "nope"),
        ("polish", store, "--model", "nope"),
        ("label", store, "0", "sea", "--model", "nope"),
        ("status", store, "--drift", "nope"),
        ("tag", store, "best", "nope"),
        ("diff", store, "0", "1", "--model", "nope"),
    ):
        code, _, err = run(*command)
        assert (code, "no model 'nope'" in err) == (2, True), (command[0], err)
    assert "there is no model at version 1; fit one" in run("topics", store)[2]


def test_a_refit_of_a_few_documents_says_that_they_are_too_few(run, tmp_path):
    texts = (
        "the sea and ship law\nthe law of tax sea\nship and sea sail wind\ntax law court judge\n"
    )
    (tmp_path / "a.txt").write_text(texts)
    store = tmp_path / "store"
    any_word = ("--min-documents", "1", "--max-document-fraction", "1")
    run("create", store, tmp_path / "a.txt", "--max-topics", "2", *any_word)
    run("update", store, tmp_path / "a.txt")
    said = "4 documents are too few for 2 topics, so the result is mostly chance; count at least"
    code, _, err = run("refit", store, "--topics", "2", "--name", "two")
    assert (code, said in err) == (0, True), err
    told = json.loads(run("refit", store, "--topics", "2", "--name", "again", "--json")[1])
    assert [said in line for line in told["warnings"]] == [True]


def test_a_refit_of_enough_documents_warns_of_nothing(run, made):
    code, out, err = run("refit", made, "--topics", "2", "--name", "enough", "--json")
    assert (code, "too few" in err, json.loads(out)["warnings"]) == (0, False, [])
