"""More than one program in a store, one of which counts its time from nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from storage import embedded
from storage.programs import end_run
from storage.store import open_store
from tests.dashboard import demo
from tests.dashboard.demo import temp
from tests.dashboard.loader import Loader
from tests.dashboard.serving import serving

View = Callable[..., Page]

TWICE = """\
stream A(x) delay 0.
stream B(x) delay 0.
stream C(x) delay 100.
Once(X, T) <- A(X, T), B(X, T+2).
Once(X, T) <- C(X, T), C(X, T+60).
query Once(X, T).
"""


def fact(name: str, at: int, arrival: int) -> str:
    return json.dumps({"fact": name, "args": ["x"], "time": at, "arrival": arrival})


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home: Path = tmp_path_factory.mktemp("two")
    with open_store(home=home) as store:
        turbines = Loader(store, "turbines", demo.TURBINES)
        now = turbines.program_now()
        turbines.read([temp("wt1", "high", now, now)])
        twice = Loader(store, "twice", TWICE)
        twice.read([fact("A", 1, 1)])
        twice.complete(10)
        twice.read([fact("C", 1, 20)], 20)
        with store.engine("owner") as engine:
            end_run(engine, twice.run, "the disk is full")
        with serving(home) as url:
            yield url
    embedded.remove(home)


def test_now_shows_every_program(view: View, two: str) -> None:
    page = view(two)
    expect(page.locator(".strip")).to_have_count(2)
    failed = page.locator("section", has_text="Once(X, T)").first
    expect(failed).to_contain_text("failed: the disk is full")
    page.locator(".card", has_text="Once(X, T)").locator(".pending a").click()
    expect(page.locator("tr.opens")).to_have_count(1)
    expect(page.locator("tr.opens")).to_contain_text("Once(x, 1)")
    assert "program=twice" in page.url


def test_a_program_is_chosen_and_stays_in_the_address(view: View, two: str) -> None:
    page = view(f"{two}/pending?program=turbines")
    expect(page.locator("tr.opens").first).to_contain_text("Malf(wt1, ")
    page.get_by_role("combobox", name="Program").click()
    page.get_by_role("option", name="twice").click()
    expect(page.locator("tr.opens").first).to_contain_text("Once(x, 1)")
    assert "program=twice" in page.url


def test_times_of_a_program_that_counts_from_nothing_are_time_points(view: View, two: str) -> None:
    page = view(f"{two}/pending?program=twice")
    row = page.locator("tr.opens")
    expect(row.locator("td.time").first).to_have_text("τ 161")
    expect(row.locator("td.due")).to_have_text("141 time points")


def test_an_answer_that_was_refuted_and_came_back_tells_its_whole_life(
    view: View, two: str
) -> None:
    page = view(f"{two}/pending?program=twice")
    page.locator("tr.opens").click()
    life = page.locator("section", has_text="History").last.locator("li")
    expect(life).to_have_count(3)
    expect(life.nth(2)).to_contain_text("became pending")
    expect(life.nth(1)).to_contain_text("τ 3 was refuted")
    expect(life.nth(0)).to_contain_text("τ 20 another way to complete it")
