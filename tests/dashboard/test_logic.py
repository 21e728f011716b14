"""What the pages are made of, without a browser."""

from __future__ import annotations

import contextlib
import csv
import io
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.advice import advice
from dashboard.atoms import Atom, filled, parsed, values_of
from dashboard.explained import derivation, premise_sets
from dashboard.filters import parse_bindings, parse_instant
from dashboard.highlight import highlighted
from dashboard.markup import Node, h, link
from dashboard.queries import Decided, Delays, Triple
from dashboard.screens.decided import to_csv
from dashboard.timeline import timeline
from dashboard.times import Clock, duration
from dashboard.words import must_happen, time_of, waits_for
from resolution.explain import explain
from resolution.program import load
from tests.dashboard.demo import TURBINES

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TAU = int(NOW.timestamp())
LIVE = Clock(1000, TAU, True, TAU + 1)
REPLAY = Clock(1000, 12, False, TAU)


def text(node: Node) -> str:
    """What a reader sees, times as ⟨τ⟩ and countdowns as ⟨…τ⟩."""
    if isinstance(node, str):
        return node
    _, attributes, *children = node
    if "time" in attributes:
        return f"⟨{attributes['tau']}⟩"
    if "left" in attributes:
        return f"⟨…{attributes['tau']}⟩"
    return "".join(map(text, children))


def find(node: Node, class_: str) -> list[Any]:
    if isinstance(node, str):
        return []
    own = [node] if class_ in node[1].get("class", "").split() else []
    return own + [found for child in node[2:] for found in find(child, class_)]


def triple(**given: Any) -> Triple:
    values: dict[str, Any] = {
        "id": UUID(int=1),
        "premise": 1,
        "evidence": ["Temp(wt2, high, 10)"],
        "arrivals": [11],
        "hypotheses": ["Temp(wt2, high, 12)", "Temp(wt2, high, 14)"],
        "closes": [16, 18],
        "conditions": [],
        "deadline": 16,
        "reason": "Temp(wt2, high, 12)",
        "start_tau": 11,
        "end_tau": None,
        "live": True,
    }
    return Triple(**values | given)


# --- times ---------------------------------------------------------------------------------------


def test_a_program_that_counts_from_nothing_shows_time_points() -> None:
    assert text(REPLAY.at(12)) == "τ 12"
    assert text(REPLAY.atom("Malf(wt2, 12)")) == "Malf(wt2, 12)"
    assert text(REPLAY.left(15)) == "3 time points"


def test_a_program_by_the_calendar_shows_local_time() -> None:
    assert text(LIVE.at(TAU)) == f"⟨{TAU}⟩"
    assert text(LIVE.atom(f"Malf(wt2, {TAU})")) == f"Malf(wt2, ⟨{TAU}⟩)"
    assert text(LIVE.atom(f"Alarm({TAU})")) == f"Alarm(⟨{TAU}⟩)"
    assert text(LIVE.atom("Halt(wt2, T+3)")) == "Halt(wt2, T+3)"
    assert text(LIVE.atom('Odd("a, 5)", T)')) == 'Odd("a, 5)", T)'


def test_what_arrives_in_the_time_point_of_the_deadline_is_in_time() -> None:
    (shown,) = [LIVE.left(TAU + 5)]
    assert isinstance(shown, list)
    assert shown[1]["left"] == (TAU + 6) * 1000


def test_a_run_that_ended_counts_no_seconds_down() -> None:
    ended = Clock(1000, TAU, False, TAU + 1)
    assert text(ended.left(TAU + 90)) == "1 min 30 s"
    replayed = Clock(1000, TAU, True, TAU + 10 * 86_400)
    assert text(replayed.left(TAU + 90)) == "1 min 30 s"


def test_a_time_beyond_all_calendars_is_a_number() -> None:
    assert text(LIVE.at(10**15)) == f"τ {10**15:,}"


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1500, "1.5 s"),
        (60_000, "1 min"),
        (90_000, "1 min 30 s"),
        (3_600_000, "1 h"),
        (90_000_000, "1 d 1 h"),
    ],
)
def test_durations(ms: int, said: str) -> None:
    assert duration(ms) == said


@pytest.mark.parametrize(
    ("atom", "time"),
    [
        ("Temp(wt2, high, 3)", (None, 3)),
        ("Alarm(3)", (None, 3)),
        ("Temp(wt2, T)", ("T", 0)),
        ("Temp(wt2, T2+1)", ("T2", 1)),
        ("Temp(wt2, T2-10)", ("T2", -10)),
        ('Odd("x, 5)", 7)', (None, 7)),
        ("no atom", None),
    ],
)
def test_the_time_of_an_atom(atom: str, time: tuple[str | None, int] | None) -> None:
    assert time_of(atom) == time


# --- sentences and the picture -------------------------------------------------------------------


def test_what_an_answer_waits_for() -> None:
    said = waits_for(["A(1)", "B(2)", "C(3)", "D(4)"], ["T > 3"], REPLAY, 2)
    assert "".join(map(text, said)) == "A(1), B(2) and 2 more where T > 3"


def test_conditions_on_times_are_shown_as_times() -> None:
    said = waits_for(["Login(u, T2)"], [f"T2 >= {TAU}", "V > 80"], LIVE)
    assert "".join(map(text, said)) == f"Login(u, T2) where T2 >= ⟨{TAU}⟩, V > 80"


def test_what_must_happen_and_by_when() -> None:
    said = [text(node) for node in must_happen(triple(), REPLAY)]
    assert said == [
        "Temp(wt2, high, 12) must arrive by τ 16: 4 time points",
        "Temp(wt2, high, 14) must arrive by τ 18: 6 time points",
    ]
    endless = triple(hypotheses=["Temp(wt2, T)"], closes=[None], deadline=None)
    assert "at any time" in text(must_happen(endless, REPLAY)[0])


def place(node: Any) -> float:
    return float(node[1]["style"].split("--x: ")[1].split("%")[0])


def test_the_picture_has_a_row_for_each_atom_in_the_order_of_time() -> None:
    drawn = timeline(triple(), 11, None, REPLAY)
    assert len(find(drawn, "track")) == 3
    (held,), (arrived,) = find(drawn, "held")[:1], find(drawn, "arrived")[:1]
    assert place(held) < place(arrived)
    (now,), (deadline,) = find(drawn, "now"), find(drawn, "deadline")
    assert place(arrived) < place(now) < place(deadline)
    first, second = find(drawn, "window")[:2]
    assert place(first) < place(second)


def test_the_window_of_a_hypothesis_begins_where_its_conditions_say() -> None:
    open_ended = triple(
        hypotheses=["Login(u, T2+1)"], closes=[75], conditions=["T2 >= 11", "T2 <= 70"], deadline=75
    )
    ground = triple(hypotheses=["Login(u, 12)"], closes=[75], deadline=75)
    drawn = [timeline(one, 10, None, REPLAY) for one in (open_ended, ground)]
    windows = [find(one, "window")[0] for one in drawn]
    assert place(windows[0]) == place(windows[1])


def test_what_closed_is_crossed_out() -> None:
    drawn = timeline(triple(live=False), 11, 16, Clock(1000, 40, True, TAU))
    assert find(drawn, "closed")
    assert not find(drawn, "now")
    assert not find(drawn, "rest")


# --- filters -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("", {}),
        ("X = wt2", {"X": "wt2"}),
        ("X=wt2,Y=3", {"X": "wt2", "Y": 3}),
        ('X = "3"', {"X": "3"}),
        ('X = "a, \\"b\\" = c", T = 1.5', {"X": 'a, "b" = c', "T": 1.5}),
        ("X = 2.0", {"X": 2}),
        ("X = -7", {"X": -7}),
        ("X = two words", {"X": "two words"}),
        ('X = "<b>"', {"X": "<b>"}),
    ],
)
def test_bindings_are_written_as_in_programs(written: str, meant: dict[str, Any]) -> None:
    assert parse_bindings(written) == meant


@pytest.mark.parametrize("written", ["wt2", "X", "X =", "= 3", 'X = "open', ","])
def test_what_is_no_binding_is_refused_with_how_to_write_one(written: str) -> None:
    with pytest.raises(ValueError, match=r"write bindings|is no string"):
        parse_bindings(written)


@given(st.text(max_size=40))
def test_no_text_breaks_the_filters(written: str) -> None:
    for parse in (parse_bindings, lambda t: parse_instant(t, LIVE, UTC, NOW)):
        with contextlib.suppress(ValueError):
            parse(written)


ZONE = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("-1h", TAU - 3600),
        ("-90s", TAU - 90),
        ("14:30", TAU + 1800),
        ("13:59:59", TAU - 1),
        ("2026-03-01 14:00", TAU),
        ("2026-03-01T12:00:00Z", TAU),
        (str(TAU), TAU),
        (f"τ {TAU}", TAU),
    ],
)
def test_times_are_written_as_people_do(written: str, meant: int) -> None:
    assert parse_instant(written, LIVE, ZONE, NOW) == meant


@pytest.mark.parametrize("written", ["yesterday", "25:00", "-1x", "2026-13-01", "1e99"])
def test_what_is_no_time_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"write|no time"):
        parse_instant(written, LIVE, ZONE, NOW)


def test_a_program_that_counts_from_nothing_takes_time_points_alone() -> None:
    assert parse_instant("5", REPLAY, ZONE, NOW) == 5
    with pytest.raises(ValueError, match="time point"):
        parse_instant("14:30", REPLAY, ZONE, NOW)


# --- delays, programs, CSV -----------------------------------------------------------------------


def delays(delay: int, seen: dict[int, int], beyond: dict[int, int] | None = None) -> Delays:
    return Delays("Temp", [], delay, delay, sorted(seen.items()), sorted((beyond or {}).items()))


def test_a_bound_that_lets_many_facts_be_late_is_too_tight() -> None:
    found = advice(delays(2, {0: 900, 5: 99, 50: 1}, {3: 99, 48: 1}), REPLAY)
    assert found.change
    assert "100 of 1,000 facts came late" in found.text
    assert "With 3 more" in found.text


def test_a_bound_far_beyond_the_slowest_fact_is_too_wide() -> None:
    found = advice(delays(100, {0: 5000, 8: 10}), REPLAY)
    assert found.change
    assert "A δ of 10 leaves room" in found.text
    assert "90 time points sooner" in found.text


@pytest.mark.parametrize(
    "one", [delays(10, {0: 5000, 8: 10}), delays(100, {0: 10}), delays(5, {0: 5000, 9: 1}, {4: 1})]
)
def test_other_bounds_are_left_alone(one: Delays) -> None:
    assert not advice(one, REPLAY).change


@given(st.text(alphabet='abXY_%#"\\ .,()<-:=0123456789\nquerystreamdelay', max_size=80))
def test_colours_change_no_character(program: str) -> None:
    assert text(highlighted(program)) == program


def test_a_spreadsheet_runs_nothing() -> None:
    row = Decided(
        1, UUID(int=1), "Q", 'Q("=1+1", 5)', {"X": "=1+1", "T": 5, "Y": 'a"b,c\n'}, 1, 2, "@x", NOW
    )
    (found,) = csv.DictReader(io.StringIO(to_csv([row])))
    assert found["X"] == "'=1+1"
    assert found["reason"] == "'@x"
    assert found["Y"] == 'a"b,c\n'
    assert found["T"] == "5"
    assert found["answer"] == 'Q("=1+1", 5)'


# --- markup --------------------------------------------------------------------------------------


def test_an_element_is_data() -> None:
    assert h("td", "<b>", None, class_="a", aria_label="x", title=None) == [
        "td",
        {"class": "a", "aria-label": "x"},
        "<b>",
    ]


def test_a_link_carries_any_text_in_its_query() -> None:
    node = link("pending", "x", {"query": "a&b=<c>", "text": "ä ö", "gone": None})
    assert isinstance(node, list)
    assert node[1]["href"] == "pending?query=a%26b%3D%3Cc%3E&text=%C3%A4+%C3%B6"


def test_a_clock_that_ticks_is_where_the_wall_clock_is() -> None:
    tau = int(time.time())
    assert abs(Clock(1000, tau, True, tau).position() - time.time()) < 60


# --- derivations ---------------------------------------------------------------------------------


def test_atoms_are_taken_apart() -> None:
    assert parsed('Odd("a, \\"b)", x1, T+1)') == Atom("Odd", ('"a, \\"b)"', "x1", "T+1"))
    assert parsed("Alarm(T)") == Atom("Alarm", ("T",))
    assert parsed("no atom") is None


def test_values_come_from_the_answer_its_evidence_and_its_hypotheses() -> None:
    values = values_of(
        ["Login(U, fail, T1)", "Login(U, success, T2)"],
        ("Brute(U, T2)", "Brute(u7, T2)"),
        ["Login(u7, fail, 10)", "Login(u7, success, T2)"],
    )
    assert filled("Seen(U, T1+3)", values) == "Seen(u7, 13)"
    assert filled("Seen(U, T2-1)", values) == "Seen(u7, T2-1)"
    assert filled('Seen("U", 4)', values) == 'Seen("U", 4)'


def test_premises_that_could_match_either_fact_match_so_that_all_fit() -> None:
    values = values_of(
        ["Temp(X, T)", "Temp(Y, T+1)", "Link(X, Y, T)"],
        ("Both(T)", "Both(5)"),
        ["Temp(a, 5)", "Temp(b, 6)", "Link(a, b, 5)"],
    )
    assert filled("Pair(X, Y, T)", values) == "Pair(a, b, 5)"


def test_a_derivation_shows_rules_with_the_values_of_the_answer() -> None:
    program = load(TURBINES)
    shown = triple(
        evidence=["Temp(wt2, high, 10)"],
        hypotheses=["Temp(wt2, high, 20)", "Temp(wt2, high, 30)"],
    )
    drawn = derivation(explain(program), shown, "Malf(wt2, 10)", TURBINES, REPLAY)
    assert drawn is not None
    said = text(drawn)
    assert "Shdn(wt2, 30)" in said
    assert "Cool(wt2, 20)line 10: Cool(X, T+10) <- Flag(X, T), Flag(X, T+10)." in said
    assert "Temp(wt2, high, 10)arrived at τ 11" in said
    assert said.count("may still arrive") == 2


def test_a_variable_without_a_name_is_another_one_each_time() -> None:
    program = (
        "stream P(a, b) delay 1.\nstream R(a) delay 1.\n"
        "Q(X, T) <- P(X, _, T), P(X, _, T+1), R(_, T).\nquery Q(X, T).\n"
    )
    shown = triple(
        evidence=["P(a, u, 10)", "P(a, v, 11)"],
        arrivals=[10, 11],
        hypotheses=["R(W, 10)"],
        closes=[11],
    )
    drawn = derivation(explain(load(program)), shown, "Q(a, 10)", program, REPLAY)
    assert drawn is not None
    said = text(drawn)
    assert "P(a, u, 10)arrived at τ 10" in said
    assert "P(a, v, 11)arrived at τ 11" in said
    assert "R(W, 10)may still arrive" in said


def test_premise_sets_are_told_in_words() -> None:
    (malf, halt) = explain(load(TURBINES))
    said = text(premise_sets("Malf(X, T)", malf, REPLAY))
    assert (
        "Temp(X, high, T+10) 10 time points after it; may arrive up to 40 time points late, some "
        "up to 90 time points; it closes at T+100" in said
    )
    assert "is decided at the latest at T+110" in said
    said = text(premise_sets("Halt(X, T)", halt, REPLAY))
    assert "Brake(X, T1) from 120 time points before it to 1 time point before it" in said
    assert "did not say" in text(premise_sets("Malf(X, T)", None, REPLAY))
