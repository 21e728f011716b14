"""Old partitions go, whole; what a run still needs stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from sqlalchemy import text
from typer.testing import CliRunner

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


def test_alerts_that_are_done_with_go(own: Store) -> None:
    """Delivered or given up before the limit; what waits stays, however old it is."""
    running = Running(own, a_program())
    with psycopg.connect(own.url("owner"), autocommit=True) as db:
        db.execute(
            "with e as (insert into endpoints (name, url, program) values (%s, 'http://h', %s) "
            "returning id) insert into outbox (endpoint, webhook_id, event, run, program, query, "
            "answer_id, tau, body, status, done_at) select e.id, status, 'confirmed', %s, %s, "
            "'Malf', gen_random_uuid(), 0, '{}', status, "
            "case when status <> 'waiting' then now() end "
            "from e, unnest('{delivered,dead,waiting}'::text[]) status",
            (running.program.name, running.program.name, running.run, running.program.name),
        )
    left = "select status from outbox where run = :run order by 1"
    with own.engine("owner") as engine:
        assert [p for p in retention.prune(engine, now=later(60)) if p.what == "alerts"] == []
        would = [p for p in retention.prune(engine, now=later(91), dry=True) if p.what == "alerts"]
        assert [(p.table, p.bytes > 0) for p in would] == [("outbox", True)]
        assert len(running.read(left)) == 3
        assert [p for p in retention.prune(engine, now=later(91)) if p.what == "alerts"] == would
    assert running.read(left) == [("waiting",)]
    running.close()


def test_pruning_beside_a_run_looks_at_answers_only_where_it_pays(own: Store) -> None:
    running = Running(own, a_program())
    going = triple("a", ["e"], ["h"], start=1, end=2, deadline=9)
    running.apply(going, triple("a", ["e", "h"], start=2), tau=2)
    looked = "select pruned_to is not null from runs where id = :run"
    rows = "select count(*) from triples where run = :run"
    with own.engine("owner") as engine:
        retention.prune(engine, thorough=False, now=later(60))
        assert running.read(looked) == [(False,)]  # nothing was decided before the limit
        retention.prune(engine, thorough=False, now=later(120))
        assert running.read(looked) == [(True,)]
        assert running.read(rows) == [(1,)]
        running.apply(
            triple("b", ["e"], ["h"], start=3, end=4, deadline=9),
            triple("b", ["e", "h"], start=4),
            tau=4,
        )
        retention.prune(engine, thorough=False, now=later(120))
        assert running.read(rows) == [(3,)]  # this hour was looked at
        retention.prune(engine, now=later(120))
        assert running.read(rows) == [(2,)]
    running.close()


def test_pruning_beside_a_run_gives_way(own: Store) -> None:
    """Neither a reader nor another process that prunes is waited for."""
    running = Running(own, a_program())
    running.apply(tau=0)
    with own.engine("owner") as engine, psycopg.connect(own.url("reader")) as reader:
        reader.execute("select * from batches, all_late_facts, all_rejected_events")
        gone = {p.what for p in retention.prune(engine, thorough=False, now=later(60))}
        assert gone.isdisjoint({"batches", "late_facts", "rejected_events"})
        assert running.read("select count(*) from batches where run = :run") == [(1,)]
        reader.rollback()
        with retention._alone(engine, thorough=True):
            assert retention.prune(engine, thorough=False, now=later(60)) == []
        gone = {p.what for p in retention.prune(engine, thorough=False, now=later(60))}
        assert {"batches", "late_facts", "rejected_events"} <= gone
    running.close()


def test_a_dry_run_sets_nothing(own: Store) -> None:
    from monitor.cli import app

    running = Running(own, a_program())
    running.apply(tau=0)

    def prune(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["db", "prune", "--store", own.url("owner"), *arguments])
        assert done.exit_code == 0, done.output
        return done.stdout

    with own.engine("owner") as engine:
        with engine.connect() as db:
            before = retention.kept(db)
        assert prune("--keep", "late_facts=0", "--dry-run").startswith("nothing is older")
        with engine.connect() as db:
            assert retention.kept(db) == before
        prune("--keep", "late_facts=3", "--keep", "runs=ever")
        with engine.connect() as db:
            assert retention.kept(db) == {**before, "late_facts": 3, "runs": None}
        for what, days in before.items():
            retention.keep(engine, what, days)
    wrong = ["db", "prune", "--store", own.url("owner"), "--dry-run", "--keep", "all=1"]
    done = CliRunner().invoke(app, wrong)
    assert done.exit_code == 1
    assert "there is no 'all' to keep" in done.stderr
    running.close()


def test_settings_are_checked_and_told(own: Store) -> None:
    with own.engine("owner") as engine:
        with pytest.raises(StoreError, match="one of late_facts"):
            retention.keep(engine, "everything", 3)
        with pytest.raises(StoreError, match="1 day or more"):
            retention.keep(engine, "answers", 0)
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
