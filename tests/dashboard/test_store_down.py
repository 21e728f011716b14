"""A store that is empty, down, or back again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from storage import embedded
from storage.store import open_store
from tests.dashboard import demo
from tests.dashboard.demo import temp
from tests.dashboard.loader import Loader
from tests.dashboard.serving import serving

View = Callable[..., Page]


def test_an_empty_store_says_what_to_do_and_fills_by_itself(view: View, new_home: Path) -> None:
    with open_store(home=new_home) as store, serving(new_home) as site:
        now, pending = view(site), view(f"{site}/pending")
        for page in (now, pending):
            expect(page.get_by_text("Nothing has run into this store yet.")).to_be_visible()
            expect(page.locator("code", has_text="whilst run")).to_be_visible()
        run = Loader(store, "turbines", demo.TURBINES)
        expect(now.locator(".card").first).to_be_visible()
        expect(pending.get_by_text("Nothing is pending.")).to_be_visible()
        at = run.program_now()
        run.read([temp("wt1", "high", at, at)])
        expect(pending.locator("tr.opens").first).to_be_visible()


def test_a_store_that_is_down_shows_a_banner_and_recovers(view: View, new_home: Path) -> None:
    with open_store(home=new_home) as store:
        run = Loader(store, "turbines", demo.TURBINES)
        at = run.program_now()
        run.read([temp("wt1", "high", at, at)])
        with serving(new_home) as site:
            pending, now = view(f"{site}/pending"), view(site)
            before = pending.locator("tr.opens").count
            expect(pending.locator("tr.opens").first).to_be_visible()
            shown = before()
            expect(now.locator(".card").first).to_be_visible()
            run.writer.close()
            embedded.stop(new_home)
            for page in (pending, now):
                expect(page.get_by_role("alert")).to_contain_text("The store does not answer.")
            # What was known stays on the screen, and says that it is old.
            expect(pending.locator("tr.opens")).to_have_count(shown)
            expect(now.locator(".card").first).to_be_visible()
            # Who comes now learns the same, and sees the page as soon as there is one.
            late = view(f"{site}/confirmed")
            expect(late.get_by_role("alert")).to_contain_text("The store does not answer.")
            with open_store(home=new_home):
                for page in (pending, now, late):
                    expect(page.get_by_role("alert")).to_have_count(0)
                run.read([temp("wt2", "high", at, at)])
                expect(pending.locator("tr.opens", has_text="wt2").first).to_be_visible()
                expect(late.locator(".whilst h1")).to_have_text("Confirmed")
