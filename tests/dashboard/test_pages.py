"""Every page in a real browser, on a store that a run filled."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect

from storage.store import Store
from tests.dashboard.demo import TURBINES, brake, temp
from tests.dashboard.loader import Loader

View = Callable[..., Page]


def rows(store: Store, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(store.url("reader")) as db:
        return db.execute(statement, values).fetchall()


def number(store: Store, query: str, status: str) -> int:
    return int(rows(store, f"select {status} from counts where query = %s", query)[0][0])


def one(store: Store, status: str) -> tuple[int, str, str]:
    """The run, id and text of some answer with that status."""
    found = rows(
        store,
        "select run, id::text, answer from answers where status = %s and query = 'Malf' "
        "order by id limit 1",
        status,
    )
    return found[0]


# --- Now -----------------------------------------------------------------------------------------


def test_now_counts_answers_and_lists_what_decides_soonest(
    view: View, site: str, postgres: Store
) -> None:
    page = view(site)
    card = page.locator(".card").filter(has_text="Malf(X, T)")
    expect(card.locator(".pending a")).to_have_text(str(number(postgres, "Malf", "pending")))
    expect(card.locator(".confirmed a")).to_have_text(str(number(postgres, "Malf", "confirmed")))
    expect(page.locator("section", has_text="Decide soonest").last.locator("li")).to_have_count(8)
    expect(page.locator(".figure", has_text="late").locator("b")).not_to_have_text("0")


def test_a_new_answer_shows_by_itself(view: View, site: str, run: Loader, postgres: Store) -> None:
    page = view(site)
    before = number(postgres, "Malf", "pending")
    shown = page.locator(".card").filter(has_text="Malf(X, T)").locator(".pending a")
    expect(shown).to_have_text(str(before))
    now = run.program_now()
    run.read([temp("fresh", "high", now, now)])
    after = number(postgres, "Malf", "pending")
    assert after > before
    expect(shown).to_have_text(str(after))


def test_a_number_leads_to_its_answers(view: View, site: str) -> None:
    page = view(site)
    page.locator(".card").filter(has_text="Halt(X, T)").locator(".pending a").click()
    expect(page.locator("tr.opens").first).to_contain_text("Halt(")
    assert page.url.endswith("/pending?query=Halt")
    expect(page.locator("td.query", has_text="Malf")).to_have_count(0)


# --- Pending -------------------------------------------------------------------------------------


def test_pending_is_sorted_by_deadline(view: View, site: str, postgres: Store) -> None:
    page = view(f"{site}/pending")
    expect(page.locator("tr.opens").first).to_be_visible()
    shown = page.locator("tr.opens td.time:not(.since) time").evaluate_all(
        "all => all.map(one => one.dateTime)"
    )
    assert shown
    assert shown == sorted(shown)
    expect(page.locator("tr.opens").first.locator("td.evidence")).to_contain_text(" of ")


def test_filters_are_in_the_address_and_come_back_from_it(
    view: View, site: str, postgres: Store
) -> None:
    page = view(f"{site}/pending")
    expect(page.locator("tr.opens").first).to_be_visible()
    device = rows(postgres, "select bindings->>'X' from pending_answers where query = 'Malf'")[0][0]
    page.get_by_label("Bindings").fill(f"X = {device}")
    page.get_by_label("Bindings").press("Enter")
    page.get_by_label("Text in the answer").fill("malf")
    page.get_by_label("Text in the answer").press("Enter")
    expected = rows(
        postgres,
        "select answer from pending_answers where bindings @> jsonb_build_object('X', %s::text) "
        "and query = 'Malf'",
        device,
    )
    expect(page.locator("tr.opens")).to_have_count(len(expected))
    expect(page.locator("tr.opens").first).to_contain_text(f"Malf({device}, ")
    again = view(page.url)
    expect(again.locator("tr.opens")).to_have_count(len(expected))
    expect(again.get_by_label("Bindings")).to_have_value(f"X = {device}")
    expect(again.get_by_label("Text in the answer")).to_have_value("malf")


def test_a_binding_that_cannot_be_read_says_how_to_write_it(view: View, site: str) -> None:
    page = view(f"{site}/pending?binding=wt2")
    expect(page.get_by_text("write bindings as X = wt2, Y = 3")).to_be_visible()
    expect(page.locator("tr.opens")).to_have_count(0)


def test_an_update_keeps_scroll_elements_and_what_is_typed(
    view: View, site: str, run: Loader
) -> None:
    page = view(f"{site}/pending?query=Malf")
    page.set_viewport_size({"width": 1280, "height": 400})
    kept = page.locator("tr.opens").last
    expect(kept).to_be_visible()
    kept.evaluate("row => { row.mine = true; getSelection().selectAllChildren(row.cells[3]) }")
    page.get_by_label("Text in the answer").focus()
    page.keyboard.type("ma")
    page.mouse.move(640, 300)
    page.mouse.wheel(0, 160)
    page.wait_for_function("document.querySelector('.stMain').scrollTop >= 160")
    now = run.program_now()
    run.read([temp("aaa_first", "high", now - 60, now - 60)])
    expect(page.locator("tr.opens", has_text="aaa_first").first).to_be_attached()
    assert page.evaluate("document.querySelector('.stMain').scrollTop") == 160
    assert kept.evaluate("row => row.mine")
    expect(page.get_by_label("Text in the answer")).to_be_focused()
    expect(page.get_by_label("Text in the answer")).to_have_value("ma")


def test_a_page_of_a_filtered_list_keeps_its_filters(view: View, site: str) -> None:
    page = view(f"{site}/refuted?text=malf&class_=x&page=y")
    page.get_by_role("link", name="Next", exact=True).click()
    expect(page.get_by_role("link", name="First", exact=True)).to_be_visible()
    expect(page.get_by_label("Text in the answer")).to_have_value("malf")
    assert "text=malf" in page.url
    page.get_by_label("Text in the answer").fill("wt")
    page.get_by_label("Text in the answer").press("Enter")
    expect(page.get_by_role("link", name="First", exact=True)).to_have_count(0)
    assert "after=" not in page.url


def test_a_row_opens_its_answer_and_back_returns_to_the_view(view: View, site: str) -> None:
    page = view(f"{site}/pending?text=malf")
    row = page.locator("tr.opens").nth(2)
    answer = row.locator("a").inner_text()
    row.locator("td.waits").click()
    expect(page.locator("h1.title")).to_have_text(answer)
    page.go_back()
    expect(page.locator("tr.opens").nth(2)).to_be_visible()
    expect(page.get_by_label("Text in the answer")).to_have_value("malf")
    assert page.url == f"{site}/pending?text=malf"


def test_a_row_is_opened_by_the_keyboard(view: View, site: str) -> None:
    page = view(f"{site}/pending")
    first = page.locator("tr.opens a").first
    answer = first.inner_text()
    first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1.title")).to_have_text(answer)


# --- Answer --------------------------------------------------------------------------------------


def test_a_pending_answer_says_what_must_happen_and_by_when(
    view: View, site: str, postgres: Store
) -> None:
    run, key, _ = one(postgres, "pending")
    page = view(f"{site}/answer?run={run}&id={key}")
    expect(page.locator(".pill.pending")).to_be_visible()
    hypotheses = rows(postgres, "select hypotheses from answers where id = %s", key)[0][0]
    must = page.locator("section", has_text="Why").locator("ul.must").first.locator("li")
    expect(must).to_have_count(len(hypotheses))
    expect(must.first).to_contain_text("must arrive by")
    expect(page.locator(".track.hypothesis")).to_have_count(len(hypotheses))
    expect(page.locator(".track.evidence .held").first).to_be_visible()
    expect(page.locator(".line.now")).to_be_visible()
    expect(page.locator(".line.deadline")).to_be_visible()
    expect(page.locator("section", has_text="History").last).to_contain_text("became pending")
    tree = page.locator(".tree").first
    expect(tree).to_contain_text("Shdn(")
    expect(tree.locator(".leaf.hypothesis")).to_have_count(len(hypotheses))


def test_a_confirmed_answer_shows_its_evidence(view: View, site: str, postgres: Store) -> None:
    run, key, _ = one(postgres, "confirmed")
    page = view(f"{site}/answer?run={run}&id={key}")
    expect(page.get_by_text("All of its evidence arrived")).to_be_visible()
    evidence = rows(postgres, "select evidence from answers where id = %s", key)[0][0]
    expect(page.locator(".track.evidence")).to_have_count(len(evidence))
    expect(page.locator(".track.hypothesis")).to_have_count(0)
    expect(page.locator(".history")).to_contain_text("was confirmed")


def test_a_refuted_answer_says_what_did_not_come(view: View, site: str, postgres: Store) -> None:
    run, key, _ = one(postgres, "refuted")
    page = view(f"{site}/answer?run={run}&id={key}")
    reason = rows(postgres, "select reason from answers where id = %s", key)[0][0]
    why = page.locator("section", has_text="Why").first
    expect(why).to_contain_text("did not come")
    expect(why.locator("p code").first).to_contain_text(reason.rsplit(",", 1)[0])
    expect(page.locator(".closed").first).to_be_visible()


def test_an_answer_is_found_without_its_run(view: View, site: str, postgres: Store) -> None:
    _, key, answer = one(postgres, "confirmed")
    page = view(f"{site}/answer?id={key}")
    expect(page.locator("h1.title")).to_contain_text(answer.rsplit(",", 1)[0])


@pytest.mark.parametrize(
    "address", ["answer?id=nonsense", "answer?id=00000000-0000-0000-0000-000000000000&run=99999999"]
)
def test_an_address_of_no_answer_says_so(view: View, site: str, address: str) -> None:
    page = view(f"{site}/{address}")
    expect(page.get_by_text("There is no such answer in the store.")).to_be_visible()


# --- Confirmed and Refuted -----------------------------------------------------------------------


def test_decided_answers_are_searched_by_time(view: View, site: str, postgres: Store) -> None:
    middle = rows(
        postgres,
        "select percentile_disc(0.5) within group (order by decided_at) from confirmed_answers",
    )[0][0]
    expected = rows(
        postgres, "select count(*) from confirmed_answers where decided_at >= %s", middle
    )[0][0]
    page = view(f"{site}/confirmed")
    page.get_by_label("From").fill(str(middle))
    page.get_by_label("From").press("Enter")
    expect(page.locator(".summary b")).to_have_text(str(expected))
    expect(page.locator("tr.opens")).to_have_count(min(50, expected))
    assert f"from={middle}" in page.url
    expect(page.locator(".chart .column").first).to_be_visible()


def test_csv_holds_what_the_filters_leave(view: View, site: str, postgres: Store) -> None:
    page = view(f"{site}/refuted?query=Malf")
    expect(page.locator("tr.opens").first).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    text = download.value.path().read_text(encoding="utf-8")
    found = list(csv.DictReader(io.StringIO(text)))
    expected = rows(postgres, "select answer from refuted_answers where query = 'Malf'")
    assert sorted(line["answer"] for line in found) == sorted(answer for (answer,) in expected)
    assert set(found[0]) >= {"X", "T", "since", "decided_at", "reason"}


def test_pages_of_decided_answers_miss_none_and_repeat_none(
    view: View, site: str, postgres: Store
) -> None:
    expected = rows(postgres, "select count(*) from refuted_answers")[0][0]
    assert expected > 100, "three pages are wanted"
    page = view(f"{site}/refuted")
    seen: list[str] = []
    while True:
        expect(page.locator("tr.opens").first).to_be_visible()
        links = page.locator("tr.opens a").evaluate_all("all => all.map(a => a.href)")
        seen += links
        forward = page.get_by_role("link", name="Next", exact=True)
        if not forward.count():
            break
        forward.click()
        expect(page.locator(f"tr.opens a[href='{links[0].rsplit('/', 1)[1]}']")).to_have_count(0)
    assert len(seen) == len(set(seen)) == expected
    page.get_by_role("link", name="Previous", exact=True).click()
    before = seen[-len(links) - 1].rsplit("/", 1)[1]
    expect(page.locator("tr.opens a").last).to_have_attribute("href", before)
    page.get_by_role("link", name="First", exact=True).click()
    expect(page.locator("tr.opens a").first).to_have_attribute("href", seen[0].rsplit("/", 1)[1])


# --- Rules and Health ----------------------------------------------------------------------------


def test_rules_show_the_program_and_its_delays(view: View, site: str) -> None:
    page = view(f"{site}/rules")
    expect(page.locator("pre.program")).to_be_visible()
    assert page.locator("pre.program").evaluate("one => one.textContent") == TURBINES
    expect(page.locator(".program .word").first).to_have_text("unit")
    delays = page.locator("section", has_text="Delays seen").last
    expect(delays.locator(".premises", has_text="Temp(device, level)")).to_contain_text("too tight")
    expect(delays.locator(".columns .mark")).to_have_count(3)
    sets = page.locator("section", has_text="Premise sets").last
    expect(sets).to_contain_text("Temp(X, high, T+10) 10 s after it")


def test_health_shows_late_facts_rejected_events_and_their_reasons(
    view: View, site: str, postgres: Store
) -> None:
    page = view(f"{site}/health")
    for title, relation in (("Late facts", "late_facts"), ("Rejected events", "rejected_events")):
        section = page.locator("section").filter(has=page.locator("h2", has_text=title))
        expected = rows(postgres, f"select * from {relation} order by recorded_at desc")
        expect(section.locator("tbody tr")).to_have_count(len(expected))
    rejected = rows(postgres, "select reason from rejected_events")
    expect(section).to_contain_text(rejected[0][0])
    ((beyond,),) = rows(postgres, "select max(arrival - time - delay) from late_facts")
    expect(page.locator("body")).to_contain_text(f"{beyond} s after its bound")
    expect(page.get_by_text("There are no endpoints.")).to_be_visible()
    expect(page.locator(".chart", has_text="Facts").first).to_be_visible()


# --- times, widths -------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/St_Johns"])
def test_times_are_local_and_tau_is_on_hover(
    view: View, site: str, postgres: Store, zone: str
) -> None:
    run, key, _ = one(postgres, "confirmed")
    tau = rows(postgres, "select decided_at from answers where id = %s", key)[0][0]
    page = view(f"{site}/answer?run={run}&id={key}", timezone_id=zone)
    shown = page.locator(".facts time").first
    local = datetime.fromtimestamp(tau, ZoneInfo(zone))
    expect(shown).to_contain_text(f"{local:%H:%M:%S}")
    assert f"τ {tau}" in (shown.get_attribute("title") or "")


def test_a_browser_whose_clock_is_wrong_counts_down_as_any_other(
    browser: Browser, site: str, run: Loader
) -> None:
    now = run.program_now()
    run.read([temp("slowclock", "high", now + 500, now + 500)])
    context = browser.new_context()
    context.add_init_script("const now = Date.now; Date.now = () => now() + 3600000")
    page = context.new_page()
    page.goto(f"{site}/pending?text=slowclock")
    left = page.locator("tr.opens .left").first
    expect(left).to_have_text(re.compile(r"[789]:\d\d min"))
    context.close()


PAGES = ("", "pending", "confirmed", "refuted", "rules", "health", "answer")


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_no_page_is_wider_than_its_window(
    view: View, site: str, postgres: Store, name: str, width: int
) -> None:
    run, key, _ = one(postgres, "pending")
    page = view(f"{site}/{name}" + (f"?run={run}&id={key}" if name == "answer" else ""), width)
    expect(page.locator(".whilst h1").first).to_be_attached()
    expect(page.locator(".stException, .defect")).to_have_count(0)
    wide = "document.querySelector('.stMain').scrollWidth"
    assert page.evaluate(wide) <= width
    assert page.title(), "a tab needs a name"


def test_a_brake_shows_on_every_page_it_bears_on(view: View, site: str, run: Loader) -> None:
    now = run.program_now()
    run.read([brake("onepage", now, now)])
    page = view(f"{site}/pending?text=onepage")
    expect(page.locator("tr.opens")).to_have_count(1)
    row = page.locator("tr.opens")
    expect(row).to_contain_text("Temp(onepage, low, T")
    expect(row.locator("td.waits")).to_contain_text("where")
