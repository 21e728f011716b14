"""Text from data is text: on every page, in every form that a browser or Markdown would act on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from playwright.sync_api import Page, expect

from resolution.terms import show as printed
from storage.store import open_store
from tests.dashboard.loader import Loader
from tests.dashboard.serving import serving

View = Callable[..., Page]

STRINGS = (
    "<img src=x onerror=window.hacked=1>",
    "</pre></div><script>window.hacked=1</script>",
    '"><svg onload=window.hacked=1>',
    "[link](javascript:window.hacked=1)",
    "**bold** _it_ `code` ~~no~~ # head",
    ":red[red] :material/home: :smile: $\\frac{1}{2}$",
    "{{7*7}} ${7*7} %(x)s %s",
    "=cmd|' /C calc'!A0",
    "a\nb\tc\u2028d",
    "\u202egnp.exe \u200b\ufeff",
    "'; drop table triples; --",
    "x" * 3000,
)

PROGRAM = """\
unit 1s.
stream Seen(what) delay 100000000.
stream Gone(what) delay 0.
% <img src=x onerror=window.hacked=1>
Both(X, T) <- Seen(X, T), Seen("other", T+1).
Left(X, T) <- Gone(X, T), Gone("never", T+1).
Once(X, T) <- Seen(X, T).
query Both(X, T).
query Left(X, T).
query Once(X, T).
"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from storage import embedded

    home: Path = tmp_path_factory.mktemp("hostile")
    with open_store(home=home) as store:
        run = Loader(store, "<b>rules</b>", PROGRAM)
        lines = []
        for text in STRINGS:
            for stream in ("Seen", "Gone"):
                lines.append(json.dumps({"fact": stream, "args": [text], "time": 5}))
            lines.append(text)
            lines.append(json.dumps({"fact": "Gone", "args": [text], "time": 1, "arrival": 3}))
        run.read(lines)
        run.complete(10)
        with psycopg.connect(store.url("owner")) as db:
            db.execute(
                "insert into endpoints (name, url, status, status_reason) values (%s, %s, %s, %s)",
                (STRINGS[0], STRINGS[1], "disabled", STRINGS[2]),
            )
        with serving(home) as url:
            yield url
    embedded.remove(home)


def nothing_ran(page: Page) -> None:
    assert page.evaluate("window.hacked") is None
    for tag in ("img", "script", "b b", "strong strong", "em"):
        assert page.locator(f".whilst {tag}").count() == 0, tag
    assert page.locator(".whilst a[href*='javascript']").count() == 0


@pytest.mark.parametrize("name", ["", "pending", "confirmed", "refuted", "rules", "health"])
@pytest.mark.parametrize("width", [400, 1280])
def test_no_page_acts_on_text(view: View, hostile: str, name: str, width: int) -> None:
    page = view(f"{hostile}/{name}", width)
    expect(page.locator(".whilst h1").first).to_be_attached()
    nothing_ran(page)
    assert page.evaluate("document.querySelector('.stMain').scrollWidth") <= width


def test_text_is_shown_as_it_is(view: View, hostile: str) -> None:
    page = view(f"{hostile}/pending?query=Both")
    expect(page.locator("tr.opens")).to_have_count(len(STRINGS))
    shown = page.locator("tr.opens a").evaluate_all("all => all.map(a => a.textContent)")
    assert sorted(shown) == sorted(f"Both({printed(text)}, 5)" for text in STRINGS)
    nothing_ran(page)


@pytest.mark.parametrize("name", ["pending", "confirmed", "refuted"])
def test_every_answer_can_be_opened(view: View, hostile: str, name: str) -> None:
    page = view(f"{hostile}/{name}")
    links = page.locator("tr.opens a")
    expect(links.first).to_be_visible()
    for address in links.evaluate_all("all => all.slice(0, 12).map(a => a.href)"):
        page.goto(address)
        expect(page.locator("h1.title")).to_be_visible()
        nothing_ran(page)


@pytest.mark.parametrize(
    "address",
    [
        "pending?text=<img src=x onerror=window.hacked=1>",
        "pending?text=%25_%5C",
        'pending?binding=X = "<img src=x onerror=window.hacked=1>"',
        "pending?binding=<script>window.hacked=1</script>",
        "pending?after=<script>window.hacked=1</script>",
        "pending?before=99999999999999999999.x.y",
        "pending?query=<b>x</b>&program=<i>",
        "confirmed?from=<script>window.hacked=1</script>",
        "confirmed?from=99999999999999999999&to=τ 3",
        "confirmed?after=1.not-a-uuid",
        "answer?id=<script>window.hacked=1</script>&run=<b>",
        "answer?id=00000000-0000-0000-0000-000000000000&run=99999999999999999999",
        "health?back=<img src=x>",
    ],
)
def test_no_address_breaks_a_page(view: View, hostile: str, address: str) -> None:
    page = view(f"{hostile}/{address}")
    expect(page.locator(".whilst, .stText").first).to_be_visible()
    page.wait_for_load_state("networkidle")
    expect(page.locator(".stException, .defect")).to_have_count(0)
    nothing_ran(page)


def test_filters_find_hostile_text_and_nothing_else(view: View, hostile: str) -> None:
    page = view(f"{hostile}/pending?query=Both")
    page.get_by_label("Text in the answer").fill("drop table")
    page.get_by_label("Text in the answer").press("Enter")
    expect(page.locator("tr.opens")).to_have_count(1)
    page.get_by_label("Text in the answer").fill("%s")
    page.get_by_label("Text in the answer").press("Enter")
    expect(page.locator("tr.opens")).to_have_count(1)
    page.get_by_label("Text in the answer").fill("")
    page.get_by_label("Text in the answer").press("Enter")
    expect(page.locator("tr.opens")).to_have_count(len(STRINGS))
    page.get_by_label("Bindings").fill("X = " + json.dumps(STRINGS[0]))
    page.get_by_label("Bindings").press("Enter")
    expect(page.locator("tr.opens")).to_have_count(1)
    expect(page.locator("tr.opens a")).to_contain_text(STRINGS[0])
