"""What browsers and programs are answered where a call cannot be done; the page of the calls."""

import re
from urllib.parse import urljoin

import pytest

from streaming_moments.pipelines.service.tokens import Role, add_token

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
WIDTHS = (1280, 390)


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("GET", "/nothing", 404, "There is no path"),
        ("GET", "/topics/99", 404, "99"),
        ("GET", "/topics/x", 404, "x"),
        ("GET", "/v1/receipts/none", 422, "none"),
        ("POST", "/time", 405, "does not accept this method"),
        ("GET", "/time?by=year", 422, "year"),
        ("POST", "/versions/0/rollback", 403, ""),
    ],
)
def test_errors_are_pages_for_browsers_and_json_for_others(client, method, path, status, said):
    data = client(method, path)
    assert data.headers["Content-Type"] == "application/problem+json"
    page = client(method, path, headers=BROWSER)
    assert page.status_code == data.status_code
    assert page.status_code == status
    assert page.headers["Content-Type"].startswith("text/html")
    assert "script-src 'none'" in page.headers["Content-Security-Policy"]
    assert page.headers["X-Request-ID"] in page.text
    assert said in page.text
    assert data.json()["title"] in page.text
    back = re.search(r'href="([./]+)">Back to the first page', page.text)[1]
    assert urljoin(path, back) == "/", "there is a way back"
    for accept in ("application/json", "*/*", "application/json, text/html;q=0.9"):
        told = client(method, path, headers={"Accept": accept})
        assert told.headers["Content-Type"] == "application/problem+json"


def test_a_page_of_an_error_escapes_what_was_sent(client):
    page = client("GET", "/time?by=<img src=x onerror=alert(7)>", headers=BROWSER)
    assert page.status_code == 422
    assert "<img" not in page.text
    assert "&lt;img" in page.text


def test_a_browser_without_a_token_is_asked_for_one(serve, place):
    made = add_token(place / "tokens.json", "me", Role.READER)
    with serve(tokens=str(place / "tokens.json")) as client:
        page = client("GET", "/time", headers=BROWSER)
        assert page.status_code == 401
        assert "Basic" in page.headers["WWW-Authenticate"]
        assert page.headers["Content-Type"].startswith("text/html")
        told = client("GET", "/versions/0/rollback", auth=("me", made), headers=BROWSER)
        assert (told.status_code, "This is not allowed" in told.text) == (403, True)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_of_the_calls_looks_as_others_and_leads_back(client, seen, width):
    page = seen(client, "/docs", width)
    style = "(({ fontFamily, color }) => fontFamily + color)(getComputedStyle(document.body))"
    own = page.evaluate(style)
    assert page.locator("h1").inner_text() == "API"
    assert page.locator('nav a[aria-current="page"]').inner_text() == "API"
    assert page.locator("main details").count() > 20
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator("nav a").first.click()
    assert page.evaluate(style) == own
    assert "topics" in page.locator("h1").inner_text().lower() or page.url.endswith("/")


def test_the_page_of_an_error_fits_and_leads_back(client, kept_page, examined):
    page = kept_page
    page.goto(f"http://127.0.0.1:{client.port}/nothing")
    assert page.locator("h1").inner_text() == "Not found"
    assert "no path '/nothing'" in page.locator("#detail").inner_text()
    assert page.locator("nav a").count() == 7
    examined(page, "not-found")
    page.get_by_text("Back to the first page").click()
    assert page.url == f"http://127.0.0.1:{client.port}/"
