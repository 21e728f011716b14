"""Hostile text, late facts and rejected events on their way into the store."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.staging import EVENTS, stage_events
from storage.store import Store
from tests.storage.changes import Running, a_program, triple

HOSTILE = [
    'Temp(wt2, "n/a", 3)',
    "a\\b\"c'd",
    "line\nfeed\ttab\r",
    "{},\\N,NULL",
    "<script>alert(1)</script> | # *",
    "Grüße 💧 \u202e",
    "\x01\x1f\x7f",
    "",
    "; drop table triples; --",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_comes_out_as_it_went_in(running: Running, text: str) -> None:
    row = triple(text, [text, text], [text], start=0, conditions=[text], bindings={"X": text})
    running.apply({**row, "reason": text}, tau=0)
    shown = running.read(
        "select answer, evidence, hypotheses, conditions, bindings from all_pending_answers "
        "where run = :run"
    )
    assert shown == [(text, [text, text], [text], [text], {"X": text})]


def test_what_postgres_cannot_keep_is_shown_as_such(running: Running) -> None:
    bindings = '{"X": "a\\u0000b\\\\u0000", "Y": "\\ud800"}'
    running.apply({**triple("a\0b", start=0), "bindings": bindings}, tau=0)
    shown = running.read("select answer, bindings from all_confirmed_answers where run = :run")
    assert shown == [("a\ufffdb", {"X": "a\ufffdb\\u0000", "Y": "?"})]


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), max_size=4)
)
def test_any_text_comes_out_as_it_went_in(hostile_run: Running, texts: list[str]) -> None:
    answer = json.dumps(texts)
    hostile_run.apply(triple(answer, texts, ["h"], start=0, bindings={"X": texts}), tau=0)
    shown = hostile_run.read(
        "select evidence, bindings -> 'X' from all_pending_answers "
        "where run = :run and answer = %s",
        answer,
    )
    assert shown == [(texts, texts)]


@pytest.fixture(scope="module")
def hostile_run(embedded_store: Store) -> Running:
    return Running(embedded_store, a_program())


def events(*rows: dict[str, object]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=EVENTS)


def test_late_and_rejected_are_kept_with_their_reason(running: Running) -> None:
    late = {
        "kind": "late",
        "event": b'{"fact": "Temp", "args": ["wt2", "high"], "time": 0, "arrival": 5}',
        "source": "facts.jsonl",
        "place": "facts.jsonl:7",
        "arrival": 5,
        "reason": "arrived 4 time points after its bound",
        "fact": "Temp(wt2, high, 0)",
        "stream": "Temp",
        "time": 0,
        "delay": 1,
    }
    bad = {
        "kind": "rejected",
        "event": b"\xff\xfe not \x00 JSON",
        "source": "kafka://h:1/t",
        "place": "0/42",
        "reason": "no JSON",
    }
    url = running.store.url("writer")
    for _ in range(2):  # a task that is tried again
        stage_events(url, running.run, 0, 0, [events(late, bad)])
    running.apply(tau=5, batch=0)
    name = running.program.name
    assert running.read(
        "select event, source, place, arrival, reason, fact, stream, time, delay from late_facts "
        "where program = %s",
        name,
    ) == [(late["event"].decode(), *list(late.values())[2:])]  # type: ignore[attr-defined]
    assert running.read(
        "select event, source, place, arrival, reason from rejected_events where program = %s", name
    ) == [("\\xff\\xfe not \ufffd JSON", "kafka://h:1/t", "0/42", None, "no JSON")]
    assert running.read("select late, rejected from batches where run = :run") == [(1, 1)]
    running.apply(tau=5, batch=0)
    assert running.read("select count(*) from late_facts where run = :run") == [(1,)]
