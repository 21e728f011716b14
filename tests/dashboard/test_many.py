"""A million pending answers: a screen gets a screenful, wherever in the list it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from monitor.bench.dashboard import crowd
from storage import embedded
from storage.store import open_store
from tests.dashboard import demo
from tests.dashboard.loader import Loader
from tests.dashboard.serving import serving

View = Callable[..., Page]
ROWS = 1_000_000


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home: Path = tmp_path_factory.mktemp("many")
    with open_store(home=home) as store:
        run = Loader(store, "turbines", demo.TURBINES)
        crowd(store, run.run, ROWS)
        with serving(home) as url:
            yield url
    embedded.remove(home)


def test_a_million_pending_answers_are_paged(view: View, crowded: str) -> None:
    page = view(f"{crowded}/pending")
    expect(page.locator(".summary b")).to_have_text(f"{ROWS:,}")
    expect(page.locator("tr.opens")).to_have_count(50)
    first = page.locator("tr.opens a").first.get_attribute("href")
    last = page.locator("tr.opens a").last.get_attribute("href")
    page.get_by_role("link", name="Next", exact=True).click()
    expect(page.locator(f"tr.opens a[href='{last}']")).to_have_count(0)
    expect(page.locator("tr.opens")).to_have_count(50)
    assert "after=" in page.url
    shared = view(page.url)
    second = page.locator("tr.opens a").first.get_attribute("href")
    expect(shared.locator("tr.opens a").first).to_have_attribute("href", second or "")
    page.get_by_role("link", name="Previous", exact=True).click()
    expect(page.locator("tr.opens a").first).to_have_attribute("href", first or "")


def test_those_without_a_deadline_come_last_and_are_reached_from_both_sides(
    view: View, crowded: str
) -> None:
    ends = f"{2**62}.{'f' * 8}-ffff-ffff-ffff-{'f' * 12}.{'f' * 8}-ffff-ffff-ffff-{'f' * 12}"
    page = view(f"{crowded}/pending?after={ends}")
    expect(page.locator("tr.opens")).to_have_count(50)
    expect(page.locator("tr.opens td.due", has_text="no deadline")).to_have_count(50)
    page.get_by_role("link", name="Previous", exact=True).click()
    expect(page.locator("tr.opens td.due", has_text="no deadline")).to_have_count(0)
    expect(page.locator("tr.opens")).to_have_count(50)


def test_filters_reach_all_of_them(view: View, crowded: str) -> None:
    page = view(f"{crowded}/pending?binding=X = wt4711")
    expect(page.locator("tr.opens")).to_have_count(ROWS // 50_000)
    page = view(f"{crowded}/pending?text=wt47110,")
    expect(page.locator("tr.opens")).to_have_count(ROWS // 50_000)
    page = view(f"{crowded}/pending?text=no such text")
    expect(page.get_by_text("No pending answer matches.")).to_be_visible()


def test_now_counts_them(view: View, crowded: str) -> None:
    page = view(crowded)
    expect(page.locator(".number.pending a").first).to_have_text(f"{ROWS:,}")
