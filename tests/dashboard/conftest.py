"""A store with a run in it, and the dashboard of it, for all tests of the folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from storage import embedded
from storage.store import Store, open_store
from tests.dashboard import demo
from tests.dashboard.loader import Loader
from tests.dashboard.serving import serving

# What is expected comes within a second or two; a machine that is busy gets more.
expect.set_options(timeout=30_000)


@pytest.fixture
def new_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for a store of the test's own."""
    folder = tmp_path_factory.mktemp("own")
    yield folder
    embedded.remove(folder)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("dashboard")
    yield folder
    embedded.remove(folder)


@pytest.fixture(scope="session")
def postgres(home: Path) -> Iterator[Store]:
    with open_store(home=home) as store:
        yield store


@pytest.fixture(scope="session")
def run(postgres: Store) -> Loader:
    """The turbines, up to now. The clock of the run stands still unless a test moves it."""
    return demo.fill(postgres)


@pytest.fixture(scope="session")
def site(home: Path, run: Loader) -> Iterator[str]:
    """The URL of the dashboard."""
    with serving(home) as url:
        yield url


@pytest.fixture
def view(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page with settings of its own: width, time zone, light or dark."""
    contexts: list[BrowserContext] = []

    def opened(url: str, width: int = 1280, **settings: str) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, locale="en-GB", **settings
        )
        contexts.append(context)
        page = context.new_page()
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
