"""The site in a browser without a network: its search, its width and the rules of axe.

It is built of a few pages, or read from the folder SITE: `make docs` and then `SITE=build/site`.
"""

import os
import re
import shutil
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

DOCS = Path(__file__).parent.parent / "docs"
# code and tables that scroll, a drawing, and captions of lists
WRITTEN = ("coming_from/gensim", "concepts/data_flow", "reference/index")
PAGES = (*WRITTEN, "genindex", "search")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Folder of the site."""
    if built := os.environ.get("SITE"):
        return Path(built).resolve()
    # these take a second to load, which other tests of a process need not wait for
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace

    source = tmp_path_factory.mktemp("site")
    for name in ("index", *WRITTEN):
        (source / name).parent.mkdir(exist_ok=True)
        shutil.copy(DOCS / f"{name}.md", source / f"{name}.md")
    shutil.copytree(DOCS / "static", source / "static")
    # no example of the gallery runs, and of the reference only the page with the longest names
    changes = {
        "extensions": ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"],
        "exclude_patterns": ["reference/generated/*.md", "reference/generated/api_[!s]*", "*_s*e*"],
    }
    places = source, DOCS, source / "html", source / "trees"
    with docutils_namespace(), open(os.devnull, "w") as nowhere:
        Sphinx(*places, "html", changes, status=None, warning=nowhere).build()
    return source / "html"


class Quiet(SimpleHTTPRequestHandler):
    """A server of files without a log."""

    def log_message(self, *_):
        pass


@pytest.fixture
def served(site):
    """Address of the site: axe reads the styles, which a browser refuses to pages of files."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site))
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def opened(watched, served):
    """Opens a page of the site; nothing may be asked of another host."""

    def call(name, width=1280):
        page = watched.page(width, 900, "light")
        page.goto(f"{served}/{name}.html")
        return page

    yield call
    watched.leave()
    assert [url for url in watched.asked if not url.startswith((served, "data:"))] == []


def search(page):
    """Search for a word of one page, as people do."""
    page.get_by_role("textbox", name="Search").fill("diagonalises")
    page.keyboard.press("Enter")
    named = page.get_by_role("link", name="How data flows", exact=True)
    found = page.locator("#search-results li", has=named).first
    found.wait_for()
    return found


def test_the_search_finds_a_page_and_shows_its_text(opened):
    page = opened("index")
    found = search(page)
    found.get_by_text("diagonalises").wait_for()
    found.locator("a").first.click()
    assert page.locator("h1").text_content().startswith("How data flows")


def test_the_search_needs_no_server(watched, site):
    page = watched.page(390, 900, "light")
    page.goto((site / "index.html").as_uri())
    page.locator(".nav-overlay-icon").click()
    search(page)
    # a browser lets no page of a file read another: results have no excerpts
    refused = "Access to fetch", "Failed to fetch", "Failed to load resource: net::ERR_FAILED"
    assert [one for one in watched.problems if not one.startswith(refused)] == []
    watched.problems.clear()
    assert [url for url in watched.asked if not url.startswith(("file:", "data:"))] == []


def test_what_no_page_has_is_not_found(opened):
    page = opened("search")
    page.goto(f"{page.url}?q=phlogiston")
    page.get_by_text("did not match any documents").wait_for()
    assert page.locator("#search-results li").count() == 0


def test_pages_of_the_site_fit_and_are_accessible(opened, examined, site, served):
    page = opened("index")
    names = PAGES
    if "SITE" in os.environ:
        # a page that has moved leaves for its new place at once
        leaving = 'http-equiv="refresh"'
        found = [one for one in sorted(site.rglob("*.html")) if leaving not in one.read_text()]
        names = [path.relative_to(site).with_suffix("").as_posix() for path in found]
    for name in names:
        page.goto(f"{served}/{name}.html")
        examined(page, f"site-{name.replace('/', '-')}")


def test_an_address_that_has_moved_leads_to_the_page(site):
    moved = (site / "guides" / "other_data.html").read_text()
    [link] = re.findall(r"url=(.*?)\.html", moved)
    assert (DOCS / "guides" / f"{link}.md").is_file()


def test_the_keyboard_reaches_what_scrolls_and_no_other(opened):
    page = opened("coming_from/gensim", 390)
    found = page.evaluate(
        "[...document.querySelectorAll('pre, .table-wrapper')].map("
        "(one) => [one.scrollWidth > one.clientWidth, one.tabIndex === 0])"
    )
    assert {scrolls for scrolls, _ in found} == {True, False}
    assert all(scrolls == reached for scrolls, reached in found)
    page.set_viewport_size({"width": 2000, "height": 900})
    page.wait_for_function("!document.querySelector('pre[tabindex]')")


@pytest.mark.parametrize("path", sorted(DOCS.glob("static/*_*.svg")), ids=lambda path: path.stem)
def test_a_drawing_has_a_name_and_its_text_fits_a_phone(watched, path):
    page = watched.page(390, 900, "dark")
    page.goto(path.as_uri())
    assert len(page.locator("title").text_content().split()) > 3
    assert len(page.locator("desc").text_content().split()) > 20
    boxes = page.evaluate(
        "[...document.querySelectorAll('text')].map((text) => { const box = text.getBBox();"
        " return [box.x, box.x + box.width, box.height] })"
    )
    width = page.evaluate("document.documentElement.viewBox.baseVal.width")
    assert width <= 360, "no letter is made smaller"
    assert all(left >= 8 and right <= width - 8 for left, right, _ in boxes)
    assert min(height for *_, height in boxes) >= 12
