"""Pages in a real browser, held to their width and to the rules of axe."""

import asyncio
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def kept_chromium():
    """A headless browser, and the loop of what drives it.

    The browser is the one on PATH, else the one that Playwright has installed.
    """
    from playwright.sync_api import Error, sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    found = next(filter(None, map(shutil.which, names)), None)
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=found,
                args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
            )
        except Error as error:
            why = f"no browser ({str(error).splitlines()[0]}): apt-get install chromium"
            # CI has one, or is not to say that the pages were looked at
            if os.environ.get("REQUIRE_BROWSER") == "1":
                pytest.fail(why)
            pytest.skip(why)
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield browser, loop
        asyncio._set_running_loop(loop)
        browser.close()


@pytest.fixture(scope="module")
def chromium(kept_chromium):
    """The browser, which starts in a second, while no test can run a loop of its own.

    Between its calls Playwright leaves its loop as that which runs in this thread.
    """
    browser, loop = kept_chromium
    asyncio._set_running_loop(loop)
    yield browser
    asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def pictured():
    """Leaves a picture of a page in the folder SCREENSHOTS, if there is one."""
    folder = os.environ.get("SCREENSHOTS")

    def call(page, name):
        if folder:
            file = f"{name}-{page.viewport_size['width']}.png"
            page.screenshot(path=Path(folder) / file, full_page=True)

    return call


@pytest.fixture(scope="session")
def examined(pictured):
    """Holds a page to its width and the rules of axe, on a desk and on a phone."""
    from axe_playwright_python.sync_playwright import Axe

    axe = Axe()

    def call(page, name):
        before = page.viewport_size
        for width, scheme in ((1280, "light"), (390, "dark")):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)
            found = axe.run(page).response["violations"]
            told = [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]
            assert told == [], (name, width)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            pictured(page, name)
        page.set_viewport_size(before)

    return call


@pytest.fixture(scope="module")
def kept_page(chromium):
    """A page for one test after another: a context of its own takes each a third of a second."""
    context = chromium.new_context()
    yield context.new_page()
    context.close()


@dataclass
class Watched:
    """Pages, what went wrong in them, and the addresses that they asked for."""

    browser: object
    kept: object
    problems: list = field(default_factory=list)
    asked: list = field(default_factory=list)
    pages: list = field(default_factory=list)

    def page(self, width, height, scheme, **choices):
        """The page that is kept, or one with a context of its own: another, or one of choices."""
        if self.pages or choices:
            page = self.browser.new_context(**choices).new_page()
        else:
            page = self.kept
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)

        def refused(dialog):
            self.problems.append(dialog.message)
            dialog.dismiss()

        heard = {
            "console": lambda message: self.problems.append(message.text),
            "pageerror": lambda error: self.problems.append(str(error)),
            "dialog": refused,
            "request": lambda request: self.asked.append(request.url),
        }
        for event, told in heard.items():
            page.on(event, told)
        self.pages.append((page, heard))
        return page

    def leave(self):
        while self.pages:
            page, heard = self.pages.pop()
            if page is not self.kept:
                page.context.close()
                continue
            for event, told in heard.items():
                page.remove_listener(event, told)
            page.goto("about:blank")


@pytest.fixture
def watched(chromium, kept_page):
    """Pages in which nothing may have gone wrong."""
    pages = Watched(chromium, kept_page)
    yield pages
    pages.leave()
    assert pages.problems == []


@pytest.fixture
def visiting(watched):
    """Opens a page; afterwards nothing may have gone wrong in it, or been asked of a network."""

    def opened(path, width=1200, height=900, scheme="light"):
        page = watched.page(width, height, scheme)
        page.goto(path.as_uri())
        page.wait_for_selector(".card")
        return page

    yield opened
    watched.leave()
    assert [url for url in watched.asked if not url.startswith(("file:", "data:"))] == []
