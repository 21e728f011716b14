"""An alert exists exactly if its answer does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.storage.changes import Running, a_program, triple


@pytest.fixture
def endpoint(running: Running) -> Iterator[int]:
    """An endpoint that wants everything of the run's program."""
    with psycopg.connect(running.store.url("owner"), autocommit=True) as db:
        (number,) = db.execute(
            "insert into endpoints (name, url, program, events, within) values "
            "(%s, 'http://localhost', %s, '{pending,confirmed,refuted,deadline}', 2) returning id",
            (running.program.name, running.program.name),
        ).fetchone()
        yield number
        db.execute("delete from endpoints where id = %s", (number,))


def alerts(running: Running, endpoint: int) -> list[tuple[Any, ...]]:
    return running.read(
        "select event, body ->> 'answer', tau from outbox where endpoint = %s order by id", endpoint
    )


def test_each_change_of_status_is_an_alert(running: Running, endpoint: int) -> None:
    row = triple("a", ["e"], ["h"], start=1, deadline=6)
    running.apply(row, triple("b", ["e"], ["h"], start=1, deadline=9), tau=1)
    running.complete(3)
    assert alerts(running, endpoint) == [("pending", "a", 1), ("pending", "b", 1)]
    running.complete(5)
    running.apply({**row, "end": 5}, triple("a", ["e", "h"], start=5), tau=5)
    running.complete(8)
    running.complete(9)
    assert alerts(running, endpoint)[2:] == [
        ("deadline", "a", 5),
        ("confirmed", "a", 5),
        ("deadline", "b", 8),
        ("refuted", "b", 9),
    ]


def test_the_id_is_the_same_in_another_run(running: Running, endpoint: int) -> None:
    running.apply(triple("a", start=1), tau=1)
    select = "select webhook_id, run from outbox where endpoint = %s"
    before = running.read(select, endpoint)
    again = Running(running.store, running.program)
    again.apply(triple("a", start=1), tau=1)
    assert running.read(select, endpoint) == before
    with psycopg.connect(running.store.url("owner"), autocommit=True) as db:
        db.execute("delete from outbox where endpoint = %s", (endpoint,))
    third = Running(running.store, running.program)
    third.apply(triple("a", start=1), tau=1)
    assert [found for found, _ in running.read(select, endpoint)] == [before[0][0]]
    again.close()
    third.close()


def test_only_what_an_endpoint_wants(running: Running, endpoint: int) -> None:
    with psycopg.connect(running.store.url("owner"), autocommit=True) as db:
        db.execute(
            "update endpoints set events = '{confirmed}', filter = %s, queries = '{Malf}' "
            "where id = %s",
            (json.dumps({"X": "wt2"}), endpoint),
        )
    running.apply(
        triple("yes", start=0, bindings={"X": "wt2", "T": 0}),
        triple("other", start=0, bindings={"X": "wt3", "T": 0}),
        triple("query", start=0, bindings={"X": "wt2"}, query="Other"),
        triple("pending", ["e"], ["h"], start=0, bindings={"X": "wt2"}),
        tau=0,
    )
    assert alerts(running, endpoint) == [("confirmed", "yes", 0)]
    elsewhere = Running(running.store, a_program())
    elsewhere.apply(triple("yes", start=0, bindings={"X": "wt2"}), tau=0)
    assert len(alerts(running, endpoint)) == 1
    elsewhere.close()
