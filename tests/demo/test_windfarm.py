"""The simulated wind farm is worth looking at: its readings come late and out of order."""

from __future__ import annotations

import json

import pytest

from monitor.windfarm import DELAY, RULES, SLOW, SLOW_DELAY, Farm
from resolution.checks import check
from resolution.facts import Arrivals, read_event
from resolution.lives import lives
from resolution.parser import parse
from resolution.premises import premise_sets
from resolution.printer import format
from resolution.program import load

START = 1_700_000_000


@pytest.fixture(scope="module")
def log() -> list[str]:
    farm = Farm(START)
    return [line for second in range(START, START + 60) for line in farm.arriving(second)]


def test_the_rules_are_without_a_mistake() -> None:
    assert not check(parse(RULES))
    assert format(RULES) == RULES


def test_every_event_is_a_fact_and_none_comes_twice(log: list[str]) -> None:
    program = load(RULES)
    facts = [read_event(line, program) for line in log]
    assert len({fact.atom for fact in facts}) == len(facts)
    assert {fact.atom.args[0] for fact in facts} >= {"wt1", SLOW, "wt12"}


def test_readings_come_late_and_out_of_order(log: list[str]) -> None:
    events = [json.loads(line) for line in log]
    assert [e["arrival"] for e in events] == sorted(e["arrival"] for e in events)
    assert [e["time"] for e in events] != sorted(e["time"] for e in events)
    held = [e for e in events if e["arrival"] - e["time"] > 1]
    late = [
        e for e in held if e["arrival"] - e["time"] > (SLOW_DELAY if e["device"] == SLOW else DELAY)
    ]
    assert 0 < len(late) < len(held) < len(events) / 2


def test_a_pause_of_the_writer_loses_nothing() -> None:
    steady, halting = Farm(START), Farm(START)
    by_seconds = [json.loads(x) for s in range(60) for x in steady.arriving(START + s)]
    at_once = [json.loads(x) for s in (7, 8, 59) for x in halting.arriving(START + s)]
    assert {(e["device"], e["time"]) for e in by_seconds} == {
        (e["device"], e["time"]) for e in at_once
    }


def test_answers_come_soon_and_some_are_confirmed(log: list[str]) -> None:
    program = load(RULES)
    arrived = Arrivals.of((read_event(line, program) for line in log), program.delays).first
    found = lives(premise_sets(program, program.queries[0]), program.delays, arrived)
    assert min(life.start for life in found) <= START + 10
    assert any(life.triple.confirmed for life in found)
