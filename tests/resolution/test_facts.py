"""From an event of a log to a fact: values, times, types, and what is refused and why."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolution.facts import (
    LAST_POINT,
    Arrivals,
    Fact,
    RejectedEvent,
    fact_of,
    read_event,
    time_point,
)
from resolution.program import load
from resolution.terms import Atom, Time, parse_value, show

PROGRAM = load("""\
unit 10s.
stream Temp(device, level) delay 1.
stream Load(host: string, percent: float, cores: int) delay 0.
stream Tick() delay 2.
P(X, T) <- Temp(X, high, T), Load(X, V, C, T), Tick(T).
query P(X, T).
""")


def read(**event: Any) -> Fact:
    return read_event(json.dumps(event), PROGRAM)


def refused(**event: Any) -> str:
    with pytest.raises(RejectedEvent) as rejected:
        read(**event)
    return str(rejected.value)


def test_fields_in_order_or_by_name() -> None:
    fact = Fact(Atom("Temp", ("wt2", "high"), Time(None, 3)), 4)
    assert read(fact="Temp", args=["wt2", "high"], time=3, arrival=4) == fact
    assert read(fact="Temp", device="wt2", level="high", time=3, arrival=4) == fact
    assert read(fact="Tick", time=3) == read(fact="Tick", args=[], time=3)


def test_arrival_defaults_to_time() -> None:
    assert read(fact="Tick", time=7).arrival == 7


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (0.5, "0.5"),
        (10**30, "1000000000000000000000000000000"),
        ("1", '"1"'),
        (True, "true"),
        (False, "false"),
        ("high", "high"),
        ("High", '"High"'),
        ("n/a", '"n/a"'),
        ("", '""'),
        ('a"b\\', '"a\\"b\\\\"'),
        ("日本", '"日本"'),
    ],
)
def test_values(value: object, shown: str) -> None:
    fact = read(fact="Temp", args=[value, "x"], time=0)
    assert str(fact.atom) == f"Temp({shown}, x, 0)"


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
)
def test_a_value_reads_as_it_is_shown(value: str | float) -> None:
    shown = read(fact="Temp", args=[value, "x"], time=0).atom.args[0]
    assert not isinstance(shown, bool)
    assert parse_value(show(shown)) == shown


@pytest.mark.parametrize(
    ("time", "point"),
    [
        (0, 0),
        (12.0, 12),
        ("1970-01-01T00:00:09.999Z", 0),
        ("1970-01-01T00:00:10Z", 1),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:01:00", 6),  # without a zone: UTC
        ("1970-01-02", 8_640),
        ("2026-01-01T00:00:00Z", 176_722_560),
    ],
)
def test_times(time: object, point: int) -> None:
    assert time_point(time, PROGRAM.unit) == point


@pytest.mark.parametrize(
    "time", ["", "soon", "12", 1.5, -1, True, None, [0], "1969-12-31T23:59:59Z", 10**30, "9" * 40]
)
def test_what_is_no_time_point(time: object) -> None:
    with pytest.raises(RejectedEvent):
        time_point(time, PROGRAM.unit)


def test_types() -> None:
    assert read(fact="Load", args=["h", 3, 2], time=0).atom.args == ("h", 3, 2)
    assert "type string" in refused(fact="Load", args=[1, 3, 2], time=0)
    assert "type float" in refused(fact="Load", args=["h", "3", 2], time=0)
    assert "type int" in refused(fact="Load", args=["h", 3, 2.5], time=0)
    assert "type string" not in str(read(fact="Load", args=["1", 3, 2.0], time=0))


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"args": ["a", "b"], "time": 0}, '"fact" must name a stream'),
        ({"fact": 3, "time": 0}, '"fact" must name a stream'),
        ({"fact": "P", "args": ["a"], "time": 0}, "P is not a stream predicate"),
        ({"fact": "temp", "args": ["a", "b"], "time": 0}, "not a stream predicate"),
        ({"fact": "Temp", "args": "ab", "time": 0}, '"args" must be a list'),
        ({"fact": "Temp", "args": ["a"], "time": 0}, "Temp has 2 fields, the event 1"),
        ({"fact": "Temp", "device": "a", "time": 0}, "Temp lacks level"),
        ({"fact": "Temp", "args": ["a", None], "time": 0}, "level is null"),
        ({"fact": "Temp", "args": [[1], "b"], "time": 0}, "device is a list"),
        ({"fact": "Temp", "args": [{}, "b"], "time": 0}, "device is an object"),
        ({"fact": "Temp", "args": ["a", "b"]}, '"time" is missing'),
        ({"fact": "Temp", "args": ["a", "b"], "time": -1}, "they count from 0"),
        (
            {"fact": "Temp", "args": ["a", "b"], "time": LAST_POINT + 1},
            '"time" is beyond the last time point',
        ),
        (
            {"fact": "Temp", "args": ["a", "b"], "time": 1e30},
            '"time" is beyond the last time point',
        ),
        ({"fact": "Temp", "args": ["a", "b"], "time": 5, "arrival": 4}, "before its own time"),
        ({"fact": "Temp", "args": ["\ud800", "b"], "time": 5}, "no text can keep"),
        ({"fact": "Temp", "args": ["a\0", "b"], "time": 5}, "no text can keep"),
    ],
)
def test_what_states_no_fact(event: dict[str, Any], reason: str) -> None:
    assert reason in refused(**event)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "null",
        "[]",
        '"fact"',
        "NaN",
        '{"fact": "Tick", "time": NaN}',
        '{"fact": "Temp", "args": [1e999, "b"], "time": 0}',
        '{"fact": "Temp", "args": [-Infinity, "b"], "time": 0}',
        '{"fact": "Tick", "time": 0, "time": 1}',
        '{"fact": "Temp", "args": [' + "9" * 5_000 + ', "b"], "time": 0}',
        "[" * 100_000,
        '{"a":' * 100_000,
        "{" + " " * 1_000_001 + "}",
    ],
    ids=lambda line: line[:20],
)
def test_hostile_lines_are_refused(line: str) -> None:
    with pytest.raises(RejectedEvent) as rejected:
        read_event(line, PROGRAM)
    assert len(str(rejected.value)) < 300


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["fact", "args", "time", "arrival", "device"]), inner)
        ),
        max_leaves=8,
    )
)
def test_whatever_an_event_is_it_is_a_fact_or_refused(event: object) -> None:
    """Nothing else is raised."""
    if isinstance(event, dict):
        with contextlib.suppress(RejectedEvent):
            fact_of(event, PROGRAM)


# --- arrivals ------------------------------------------------------------------------------------


def fact(time: int, arrival: int) -> Fact:
    return read(fact="Temp", args=["a", "high"], time=time, arrival=arrival)


def test_in_time_until_the_bound_and_late_after_it() -> None:
    arrivals = Arrivals.of([fact(0, 0), fact(5, 6), fact(9, 11)], PROGRAM.delays)
    assert list(arrivals.first.values()) == [0, 6]
    assert arrivals.late == [fact(9, 11)]


def test_the_same_fact_twice_is_one_with_its_first_arrival() -> None:
    for order in ([fact(0, 5), fact(0, 1), fact(0, 0)], [fact(0, 0), fact(0, 1), fact(0, 5)]):
        arrivals = Arrivals.of(order, PROGRAM.delays)
        assert arrivals.first == {fact(0, 0).atom: 0}
        assert arrivals.late == []


def test_a_late_fact_that_comes_again_is_one_late_fact() -> None:
    assert Arrivals.of([fact(0, 9), fact(0, 2)], PROGRAM.delays).late == [fact(0, 2)]


def test_what_has_arrived_by_a_time_point() -> None:
    arrivals = Arrivals.of([fact(0, 1), fact(1, 1), fact(2, 2)], PROGRAM.delays)
    assert len(arrivals.by(0)) == 0
    assert len(arrivals.by(1)) == 2
    assert len(arrivals.by(2)) == 3


@pytest.mark.parametrize("line", ['{"fact": "Ti', '{"fact": "a\tb"}'])
def test_where_json_breaks_is_said_once(line: str) -> None:
    with pytest.raises(RejectedEvent, match=r"^not JSON: [^:]+ at character \d+$") as rejected:
        read_event(line, PROGRAM)
    assert " at at " not in str(rejected.value)
