"""Old partitions go, whole; what a run still needs stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from storage import diagram, retention
from storage.errors import StoreError, StoreReadOnly
from storage.store import Store, open_store
from tests.storage.changes import Running, a_program, triple


@pytest.fixture(scope="module")
def own(new_database: Callable[[str], str]) -> Iterator[Store]:
    """A store of its own: pruning looks at all of it."""
    with open_store(new_database("pruned")) as store:
        yield store


def later(days: int) -> datetime:
    return datetime.now(UTC) + timedelta(days=days)


def test_weeks_are_dropped_when_they_are_over(own: Store) -> None:
    running = Running(own, a_program())
    running.apply(tau=0)
    assert running.read("select count(*) from batches where run = :run") == [(1,)]
    with own.engine("owner") as engine:
        assert retention.prune(engine, now=later(20)) == []
        would = retention.prune(engine, dry=True, now=later(60))
        assert {one.what for one in would} == set(retention.WEEKLY)
        assert running.read("select count(*) from batches where run = :run") == [(1,)]
        assert retention.prune(engine, now=later(60)) == would
    assert running.read("select count(*) from batches where run = :run") == [(0,)]
    running.apply(tau=1)  # the writer makes the week's partition again
    assert running.read("select count(*) from batches where run = :run") == [(1,)]
    running.close()


def test_superseded_runs_go_and_current_ones_stay(own: Store) -> None:
    program = a_program()
    old, new = Running(own, program), Running(own, program)
    with own.engine("owner") as engine:
        gone = {one.table for one in retention.prune(engine, now=later(60)) if one.what == "runs"}
    assert gone == {f"triples_{old.run}"}
    assert new.read("select id from runs where name = %s", program.name) == [(new.run,)]
    with pytest.raises(StoreError, match="pruned"):
        old.apply(tau=0)
    old.close()
    new.close()


def test_a_run_that_goes_on_keeps_what_it_needs(own: Store) -> None:
    running = Running(own, a_program())
    first = triple("a", ["e"], ["g", "h"], start=1, end=3, deadline=9)
    middle = triple("a", ["e", "g"], ["h"], start=3, end=4, deadline=9)
    running.apply(first, middle, triple("a", ["e", "g", "h"], start=4), tau=4)
    running.apply(triple("b", ["e"], ["h"], start=4), tau=4)
    events = "select answer, event, tau from answer_history where run = :run order by 1, 3"
    with own.engine("owner") as engine:
        assert [
            p.table for p in retention.prune(engine, now=later(120)) if p.what == "history"
        ] == [f"triples_{running.run}"]
        assert running.read(events) == [
            ("a", "confirmed", 4),
            ("b", "pending", 4),
        ]
        since = "select since from all_confirmed_answers where run = :run"
        assert running.read(since) == [(1,)]
        running.apply(triple("b", ["e", "h"], start=5), tau=5)
        assert running.read("select confirmed, pending from counts where run = :run") == [(2, 0)]
        retention.keep(engine, "answers", 200)
        retention.prune(engine, now=later(300))
        retention.keep(engine, "answers", None)
    assert running.read("select count(*) from triples where run = :run") == [(0,)]
    assert running.read("select confirmed, pending from counts where run = :run") == [(0, 0)]
    running.close()


def test_settings_are_checked_and_told(own: Store) -> None:
    with own.engine("owner") as engine:
        with pytest.raises(StoreError, match="one of late_facts"):
            retention.keep(engine, "everything", 3)
        retention.keep(engine, "batches", 7)
        with engine.connect() as db:
            assert retention.kept(db)["batches"] == 7
            assert "batches 7 days" in retention.report(db)[-1]
            assert {"triples", "outbox"} <= {size.table for size in retention.sizes(db)}
            assert db.execute(text("select 1")).scalar() == 1
        retention.keep(engine, "batches", 30)


def test_the_reader_may_not_prune(own: Store) -> None:
    with pytest.raises(StoreReadOnly), own.engine("reader") as engine:
        retention.keep(engine, "batches", 1)


def test_the_diagram_names_every_table() -> None:
    drawn = diagram.mermaid()
    assert drawn.startswith("erDiagram\n")
    assert "runs ||--o{ triples : run" in drawn
    assert "programs ||--o{ runs : program" in drawn
    assert 'uuid answer_id PK "hash of query and θ"' in drawn
