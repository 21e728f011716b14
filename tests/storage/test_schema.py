"""Versions of a store: made, refused, brought up and down with data in it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from typer.testing import CliRunner

from storage import schema, version
from storage.errors import NotOurs, StoreDown, StoreError, StoreRefused, WrongVersion
from storage.models import Base
from storage.store import Store, open_store
from storage.writer import BatchFigures
from tests.storage.changes import Running, a_program, triple


def test_models_and_migrations_say_the_same(store: Store) -> None:
    with store.engine("owner") as engine, engine.connect() as db:
        found = compare_metadata(
            MigrationContext.configure(
                db, opts={"include_name": _ours, "compare_server_default": False}
            ),
            Base.metadata,
        )
    assert found == []


def _ours(name: str | None, kind: str, _: object) -> bool:
    """Partitions come and go with runs and weeks."""
    return kind != "table" or name in Base.metadata.tables


def test_versions_are_numbered_as_alembic_orders_them() -> None:
    assert ScriptDirectory(version.folder()).get_current_head() == version.head()


def test_everything_has_a_comment(store: Store) -> None:
    with psycopg.connect(store.url("reader")) as db:
        bare = db.execute(
            "select c.relname, a.attname from pg_class c "
            "left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not attisdropped "
            "where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v') "
            "and not c.relispartition and c.relname <> 'alembic_version' and c.relname <> all("
            "  select split_part(unnest(views), '.', 2) from queries) "
            "and (obj_description(c.oid) is null or col_description(c.oid, a.attnum) is null)"
        ).fetchall()
    assert bare == []


def test_down_and_up_again(new_database: Callable[[str], str]) -> None:
    url = new_database("moving")
    with open_store(url) as store, store.engine("owner") as engine:
        running = Running(store, a_program())
        running.apply(triple("a", start=0), tau=0)
        running.close()
        schema.downgrade(engine, "base")
        with psycopg.connect(url) as db:
            left = db.execute(
                "select relname from pg_class where relnamespace = 'public'::regnamespace "
                "and relkind in ('r', 'v', 'p') and relname <> 'alembic_version'"
            ).fetchall()
        assert left == []
        schema.upgrade(engine)
        again = Running(store, a_program())
        again.apply(triple("a", start=0), tau=0)
        assert again.read("select count(*) from confirmed_answers") == [(1,)]
        again.close()


_KEPT = (
    "programs", "queries", "streams", "counts", "tallies", "batches", "delays",
    "all_rejected_events", "endpoints", "outbox", "delivery_attempts",
    "confirmed_answers", "pending_answers", "refuted_answers", "answer_history",
)  # fmt: skip


def _contents(url: str) -> dict[str, list[str]]:
    """Every row, as text; of what has changed since the columns that every version has."""
    with psycopg.connect(url) as db:
        found = {
            name: [row for (row,) in db.execute(f"select t::text from {name} t order by 1")]
            for name in _KEPT
        }
        for name, columns in (
            ("runs", "id, name, checkpoint, current, complete_tau, last_batch"),
            ("retention", "what, days"),
            ("all_late_facts", "run, event, source, place, reason, batch, recorded_at"),
        ):
            rows = db.execute(f"select ({columns})::text from {name} order by 1").fetchall()
            found[name] = [row for (row,) in rows]
        # Triples that are packed are rows of their own in older versions.
        lives = db.execute("select to_regclass('lives') is not null").fetchone()
        columns = "answer_id, id, evidence, arrivals, hypotheses, closes, conditions, deadline, "
        columns += "reason, start_tau, end_tau, live, recorded_at"
        rows = db.execute(
            f"select ({columns})::text from {'lives' if lives == (True,) else 'triples'} order by 1"
        ).fetchall()
        found["triples"] = [row for (row,) in rows]
    return found


@pytest.mark.parametrize("older", version.known()[:-1])
def test_a_filled_store_goes_down_and_up_with_its_data(
    new_database: Callable[[str], str], older: str
) -> None:
    url = new_database(f"filled_{older}")
    with open_store(url) as store, store.engine("owner") as engine:
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(
                "insert into endpoints (name, url, events) values "
                "('all', 'http://localhost', '{pending,confirmed,refuted}')"
            )
        program = a_program("moved")
        running = Running(store, program)
        grown = triple("c", ["e"], ["h", "i"], start=0, end=1, deadline=9)
        gone = [
            triple("d", ["e"], ["g", "h", "i"], start=0, end=1, deadline=3, op="first"),
            triple("d", ["e", "g"], ["h", "i"], start=1, end=2, deadline=3, op="first"),
            triple("d", ["e", "g", "h"], ["i"], start=2, deadline=5, op="first"),
        ]
        running.apply(*gone, tau=1, over=1)
        running.apply(
            triple("a", start=0),
            triple("b", ["e"], ["h"], start=0, deadline=2),
            grown,
            triple("c", ["e", "h"], ["i"], start=1, deadline=9),
            triple("f", ["e"], ["h"], start=1, deadline=7),
            triple("f", ["e"], ["j"], start=1, deadline=8),
            tau=1,
            figures=BatchFigures(facts=3, delays={("Temp", 0): 3}),
        )
        running.complete(2)
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(
                "insert into all_late_facts (run, event, source, place, reason, batch) "
                "values (%s, '{}', 'f', 'f:1', 'late', 0)",
                (running.run,),
            )
            db.execute("insert into delivery_attempts (outbox, endpoint, attempt) values (1, 1, 1)")
        before = _contents(url)
        assert all(before[name] for name in ("triples", "outbox", "answer_history", "delays"))
        shown = "select deadline from answers where run = :run and answer = 'f'"
        assert running.read("select count(*) from triples where past is not null") == [(1,)]
        assert running.read(shown) == [(8,)]

        schema.downgrade(engine, older)
        with pytest.raises(WrongVersion, match="`whilst db upgrade`"), open_store(url):
            pass
        down = _contents(url)
        assert set(down["retention"]) <= set(before["retention"])
        apart = ("retention", "queries")  # the typed views are made by the whilst of that version
        assert [name for name in before if down[name] != before[name] and name not in apart] == []
        assert running.read(shown) == [(7,)]

        schema.upgrade(engine)
        assert _contents(url) == before
        assert running.read(shown) == [(8,)]
        running.apply({**grown, "op": "drop"}, triple("c", ["e", "h", "i"], start=3), tau=3)
        assert running.read("select answer from moved.malf where status = 'confirmed'") == [
            ("a",),
            ("c",),
        ]
        again = Running(store, program, running.checkpoint)
        assert again.run == running.run
        running.close()
        again.close()


def test_an_upgrade_keeps_typed_views(new_database: Callable[[str], str]) -> None:
    """The views of queries stand on the tables: they leave for a migration, and come back."""
    from storage import typed_views

    with open_store(new_database("typed")) as store, store.engine("owner") as engine:
        running = Running(store, a_program())
        running.apply(triple("a", start=0), tau=0)
        with engine.begin() as db:
            typed_views.drop_all(db)
        with pytest.raises(psycopg.errors.UndefinedTable):
            running.read("select answer from malf")
        with engine.begin() as db:
            typed_views.make_all(db)
            schema.grant(db)
        assert running.read("select answer from malf") == [("a",)]
        running.close()


@pytest.mark.parametrize(
    ("found", "advice"), [("0000", "does not know"), ("9999", "newer whilst that wrote it")]
)
def test_another_version_is_refused(
    new_database: Callable[[str], str], found: str, advice: str
) -> None:
    url = new_database(f"version_{found}")
    with open_store(url), psycopg.connect(url, autocommit=True) as db:
        db.execute("update alembic_version set version_num = %s", (found,))
    with pytest.raises(WrongVersion, match=advice), open_store(url):
        pass


def test_the_commands_tell_of_another_version(new_database: Callable[[str], str]) -> None:
    from monitor.cli import app

    url = new_database("told")
    with open_store(url), psycopg.connect(url, autocommit=True) as db:
        db.execute("update alembic_version set version_num = '9999'")
    for command in (["sql", "select 1"], ["db", "status"], ["db", "prune"], ["db", "url"]):
        result = CliRunner().invoke(app, [*command, "--store", url])
        assert result.exit_code == 1
        assert "schema version 9999" in result.stderr
    result = CliRunner().invoke(app, ["db", "downgrade", "0007", "--store", url])
    assert result.exit_code == 1
    assert "there is no version 0007" in result.stderr


def test_an_older_version_names_the_command() -> None:
    assert "`whilst db upgrade`" in str(version.wrong(version.head(), "the store"))


def test_commands_that_start_at_once_make_one_store(new_database: Callable[[str], str]) -> None:
    """None of them takes the tables that another one makes for somebody else's."""
    url = new_database("at_once")

    def opened(_: int) -> bool:
        with open_store(url):
            return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(opened, range(4)))


def test_tables_of_somebody_else_are_left_alone(new_database: Callable[[str], str]) -> None:
    url = new_database("theirs")
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("create table runs (distance int)")
    with pytest.raises(NotOurs, match="`runs` that is not ours"), open_store(url):
        pass
    apart = url + "&options=-csearch_path%3Dapart"
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("create schema apart")
    with open_store(apart) as store:
        running = Running(store, a_program())
        running.apply(triple("a", start=0), tau=0)
        assert running.read("select answer from confirmed_answers") == [("a",)]
        running.close()


def test_an_owner_who_may_make_no_roles_does(new_database: Callable[[str], str]) -> None:
    url = new_database("humble")
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("create role humble login password 'p' nocreaterole")
        db.execute("alter database humble owner to humble")
    plain = url.replace(url.split("//")[1].split("@")[0], "humble:p")
    with open_store(plain) as store:
        running = Running(store, a_program())
        running.apply(triple("a", start=0), tau=0)
        assert running.read("select answer from confirmed_answers") == [("a",)]
        with (
            pytest.raises(psycopg.errors.ReadOnlySqlTransaction),
            psycopg.connect(store.url("reader")) as db,
        ):
            db.execute("delete from runs")
        running.close()


def test_a_store_that_is_not_there_says_what_to_do(store: Store) -> None:
    good = store.url("owner")
    for url, error, text in [
        ("postgresql://127.0.0.1:1/x", StoreDown, "does not answer"),
        ("mysql://h/x", StoreError, "postgresql://user@host/database"),
        (
            good.replace("/whilst?", "/nowhere?").replace("/external?", "/nowhere?"),
            StoreDown,
            "create the database",
        ),
        (good.replace("@", "x@"), StoreRefused, "password"),
    ]:
        with pytest.raises(error, match=text) as told, open_store(url):
            pass
        assert "\n" not in str(told.value)


def test_names_hold_no_password(new_database: Callable[[str], str]) -> None:
    url = new_database("named")
    secret = url.split(":")[2].split("@")[0]
    with open_store(url) as store:
        assert secret not in repr(store)
