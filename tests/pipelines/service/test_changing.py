"""What pages let an admin change: by their own forms alone, confirmed, under the lock."""

import re
from datetime import timedelta
from urllib.parse import urljoin

import pytest

from streaming_moments.pipelines.service.http import changing, problems
from streaming_moments.pipelines.service.tokens import Role, add_token
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.locks import Lock
from streaming_moments.storage.store.store import MomentStore

NEXT = "/versions/2/rollback"


@pytest.fixture
def tokens(days):
    """A token of each role, and another admin's."""
    named = {"reader": Role.READER, "writer": Role.WRITER, "admin": Role.ADMIN, "other": Role.ADMIN}
    return {name: add_token(days / "tokens.json", name, role) for name, role in named.items()}


@pytest.fixture
def guarded(days, tokens, serve_days):
    with serve_days(tokens=str(days / "tokens.json")) as client:
        yield client


def told(token, **headers):
    return {"Authorization": f"Bearer {token}", "Sec-Fetch-Site": "same-origin", **headers}


def form_of(client, path, token):
    answer = client("GET", path, headers=told(token))
    assert answer.status_code == 200, answer.text
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="(\w+)">', answer.text))


def head_of(days):
    return MomentStore.open(str(days / "store"))


def test_a_version_is_gone_back_to_once_it_is_confirmed(days, serve_days, seen, tokens):
    with serve_days(tokens=str(days / "tokens.json")) as client:
        me = {"username": "any", "password": tokens["admin"]}
        page = seen(client, "/versions", 390, "dark", http_credentials=me)
        before = head_of(days)
        page.locator("summary").focus()
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Version 2").focus()
        page.keyboard.press("Enter")
        link = page.get_by_role("link", name="Roll back to version 2")
        link.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#changes")
        said = page.locator("#changes").inner_text()
        assert "\N{MINUS SIGN}300 documents" in said
        assert "2 shards are no longer counted" in said
        assert "Version 2 does not have the model three." in said
        assert "The tag published is removed from three." in said
        assert page.locator("#removed tbody tr").count() == 2
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert head_of(days).version == before.version, "nothing is done yet"
        page.get_by_role("button", name="Roll back to version 2").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/versions")
        assert "rollback to version 2 by admin" in page.locator("tbody tr").first.inner_text()
    after = head_of(days)
    assert (after.version, after.commit.operation) == (before.version + 1, "rollback")
    assert after.load() == before.at(2).load()
    assert (dict(after.models), dict(after.commit.tags)) == ({}, {})
    assert after.verify() == []
    Lock.acquire(Folder.at(str(days / "store")), timedelta(minutes=5)).release()


def test_nothing_changes_by_a_form_that_is_not_its_own(guarded, days, tokens):
    mine = form_of(guarded, NEXT, tokens["admin"])
    others = form_of(guarded, NEXT, tokens["other"])
    elsewhere = form_of(guarded, "/versions/1/rollback", tokens["admin"])
    ours = f"http://127.0.0.1:{guarded.port}"
    latest = head_of(days).version

    def sent(form, status, token="admin", path=NEXT, **headers):
        own = {name: value for name, value in told(tokens[token], **headers).items() if value}
        answer = guarded("POST", path, data=form, headers=own, allow_redirects=False)
        assert answer.status_code == status, answer.text
        if status >= 400:
            assert answer.headers["Content-Type"] == problems.CONTENT_TYPE
            assert head_of(days).version == latest
        return answer

    for page in ("/versions", "/topics/0", "/choice"):
        assert (
            '<form method="post"' not in guarded("GET", page, headers=told(tokens["writer"])).text
        )
        assert "rollback" not in guarded("GET", page, headers=told(tokens["reader"])).text
    sent({"head": mine["head"]}, 403)
    sent({**mine, "token": mine["token"][:-1] + "g"}, 403)
    sent({**mine, "token": "\N{SNOWMAN}"}, 403)
    sent(others, 403)
    sent(elsewhere, 403)
    sent(mine, 403, "other")
    for role in ("reader", "writer"):
        sent(mine, 403, role)
    for site in ("cross-site", "same-site", "none", "x"):
        sent(mine, 403, **{"Sec-Fetch-Site": site})
    away = {"Sec-Fetch-Site": ""}
    sent(mine, 403, **away)
    for origin in ("null", "http://evil.example", f"{ours}.evil.example", "http://127.0.0.1:1"):
        sent(mine, 403, **away, Origin=origin)
    sent({**mine, "head": str(latest - 1)}, 409)
    sent({**mine, "head": "\N{SNOWMAN}"}, 409)
    for other in ("999", "x"):
        sent(mine, 403, path=f"/versions/{other}/rollback")
        asked = guarded("GET", f"/versions/{other}/rollback", headers=told(tokens["admin"]))
        assert asked.status_code == 404
    assert guarded("GET", NEXT, headers=told(tokens["writer"])).status_code == 403
    assert guarded("POST", NEXT, data=mine).status_code == 401
    latest_one = f"/versions/{latest}/rollback"
    assert guarded("GET", latest_one, headers=told(tokens["admin"])).status_code == 409
    answer = sent(mine, 303, **away, Origin=ours)
    assert urljoin(NEXT, answer.headers["Location"]) == "/versions"
    assert head_of(days).version == latest + 1
    # what was confirmed was of the version before
    latest += 1
    sent(mine, 409)


def test_a_password_that_a_browser_sends_changes_nothing_for_another_page(
    guarded, days, tokens, chromium
):
    form, latest = form_of(guarded, NEXT, tokens["admin"]), head_of(days).version
    me = {"username": "any", "password": tokens["admin"]}
    context = chromium.new_context(http_credentials=me)
    try:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{guarded.port}/versions")
        fields = "".join(f'<input name="{name}" value="{value}">' for name, value in form.items())
        # even one that has learned what the form says
        page.goto("about:blank")
        page.set_content(
            f'<form method="post" action="http://127.0.0.1:{guarded.port}{NEXT}">{fields}'
            "<button>Win</button></form>"
        )
        with page.expect_response(lambda response: response.url.endswith(NEXT)) as answered:
            page.get_by_role("button").click()
        assert answered.value.status == 403
    finally:
        context.close()
    assert head_of(days).version == latest


def test_while_another_holds_the_lock_nothing_is_changed(guarded, days, tokens, monkeypatch):
    monkeypatch.setattr(changing, "_PATIENCE", timedelta(0))
    form, latest = form_of(guarded, NEXT, tokens["admin"]), head_of(days).version
    lock = Lock.acquire(Folder.at(str(days / "store")), timedelta(minutes=5))
    answer = guarded("POST", NEXT, data=form, headers=told(tokens["admin"]))
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert "holds the lock" in answer.json()["detail"]
    assert head_of(days).version == latest
    lock.release()
    assert guarded("POST", NEXT, data=form, headers=told(tokens["admin"])).status_code == 200


def test_a_label_is_given_and_taken_away(guarded, days, tokens):
    path = "/topics/1/label"
    form = form_of(guarded, "/topics/1", tokens["admin"])

    def given(text, status=303, path=path):
        answer = guarded(
            "POST",
            path,
            data={**form, "label": text},
            headers=told(tokens["admin"]),
            allow_redirects=False,
        )
        assert answer.status_code == status, answer.text

    given(" the sea \N{WAVE DASH} ")
    assert head_of(days).models["three"].labels == {1: "the sea \N{WAVE DASH}"}
    given("two\nlines", 422)
    given("x" * 101, 422)
    given("of another", 403, "/topics/2/label")
    given("")
    assert head_of(days).models["three"].labels == {}


def test_without_tokens_a_form_is_of_this_process(serve_days):
    with serve_days() as one, serve_days() as two:
        form = form_of(one, NEXT, "")
        sent = {"data": form, "headers": told(""), "allow_redirects": False}
        assert two("POST", NEXT, **sent).status_code == 403
        assert one("POST", NEXT, **sent).status_code == 303
