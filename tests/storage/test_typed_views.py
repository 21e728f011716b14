"""A view with real columns for each query."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from decimal import Decimal

import psycopg

from storage.programs import QueryInfo, VariableInfo
from storage.store import Store
from tests.storage.changes import Running, a_program, triple


def columns(running: Running, view: str) -> list[tuple[str, str]]:
    schema, _, name = view.rpartition(".")
    return running.read(
        "select column_name, data_type from information_schema.columns "
        "where table_name = %s and table_schema = %s order by ordinal_position",
        name,
        schema,
    )


def test_columns_are_typed_and_times_are_real(store: Store) -> None:
    hot = QueryInfo(
        "Hot",
        "Hot(D, V, Status, T)",
        (
            VariableInfo("D", column="device"),
            VariableInfo("V", "number", "celsius"),
            VariableInfo("Status"),
            VariableInfo("T", "time"),
        ),
    )
    program = a_program(unit_ms=60_000, queries=(hot,))
    running = Running(store, program)
    bindings = {"D": "wt2", "V": 81.5, "Status": "s", "T": 3}
    running.apply(
        triple("Hot(wt2, …)", start=3, bindings=bindings, query="Hot"),
        triple(
            "Hot(X, …)",
            ["e"],
            ["h"],
            start=1,
            bindings={"D": None, "V": "n/a", "T": 2**62},
            query="Hot",
        ),
        tau=3,
    )
    view = f"{program.name}.hot"
    assert columns(running, view)[:7] == [
        ("device", "text"),
        ("celsius", "numeric"),
        ("status_2", "text"),
        ("tau", "bigint"),
        ("time", "timestamp with time zone"),
        ("status", "text"),
        ("since", "bigint"),
    ]
    rows = running.read(f"select device, celsius, tau, time, status from {view} order by device")
    assert rows == [
        ("wt2", Decimal("81.5"), 3, datetime(1970, 1, 1, 0, 3, tzinfo=UTC), "confirmed"),
        (None, None, 2**62, None, "pending"),
    ]
    running.close()


def test_without_a_unit_there_are_no_timestamps(store: Store) -> None:
    running = Running(store, a_program(unit_ms=None))
    named = [name for name, _ in columns(running, f"{running.program.name}.malf")]
    assert named[:3] == ["device", "tau", "status"]
    running.close()


def test_a_plain_name_is_given_where_it_is_free(store: Store) -> None:
    name = "Only" + a_program().name
    running = Running(store, a_program(queries=(QueryInfo(name, f"{name}(T)", ()),)))
    running.apply(triple("x", start=0, query=name), tau=0)
    assert running.read(f"select answer from {name.lower()}") == [("x",)]
    other = Running(store, a_program(queries=(QueryInfo(name, f"{name}(T)", ()),)))
    other.apply(triple("y", start=0, query=name), tau=0)
    assert running.read(f"select answer from {name.lower()}") == [("x",)]
    assert running.read(f"select answer from {other.program.name}.{name.lower()}") == [("y",)]
    taken = Running(store, a_program(queries=(QueryInfo("Runs", "Runs(T)", ()),)))
    assert len(columns(taken, f"{taken.program.name}.runs")) > 0
    assert taken.read("select count(*) from runs where id = :run") == [(1,)]
    for run in (running, other, taken):
        run.close()


def test_a_changed_program_changes_its_views(store: Store) -> None:
    program = a_program()
    Running(store, program).close()
    wider = QueryInfo("Malf", "Malf(X, Y, T)", (VariableInfo("X"), VariableInfo("Y")))
    changed = Running(store, a_program(program.name, text="% another", queries=(wider,)))
    assert [name for name, _ in columns(changed, f"{program.name}.malf")][:3] == [
        "x",
        "y",
        "status",
    ]
    back = Running(store, program)
    named = [name for name, _ in columns(back, f"{program.name}.malf")]
    assert named[:3] == ["device", "tau", "time"]
    changed.close()
    back.close()


def test_names_that_sql_does_not_like(store: Store) -> None:
    program = a_program(
        'Public "x".; drop',
        queries=(QueryInfo("Ü" * 80, "…", (VariableInfo("X"), VariableInfo("x", "number"))),),
    )
    running = Running(store, program)
    (views,) = running.read(
        "select views from queries q join programs p on p.id = q.program where p.name = %s",
        program.name,
    )[0]
    assert len(views) == 2
    with psycopg.connect(store.url("reader")) as db:
        for view in views:
            schema, _, name = view.partition(".")
            db.execute(
                psycopg.sql.SQL("select * from {}").format(psycopg.sql.Identifier(schema, name))
            )
    running.close()


def test_a_column_of_a_view_is_searched_by_an_index(embedded_store: Store) -> None:
    running = Running(embedded_store, a_program())
    rows = [triple(f"a{n}", start=0, bindings={"X": f"wt{n}", "T": 0}) for n in range(3000)]
    running.apply(*rows, tau=0)
    with psycopg.connect(embedded_store.url("owner"), autocommit=True) as db:
        db.execute(f"analyze triples_{running.run}")
    plan = running.read(
        "explain select * from answers where run = :run and bindings ->> 'X' = 'wt7'"
    )
    assert any("Index Scan" in line or "Bitmap Index" in line for (line,) in plan), plan
    running.close()


def test_a_value_of_any_length_is_kept_and_found(store: Store) -> None:
    running = Running(store, a_program())
    text = random.Random(1).randbytes(50_000).hex()  # nothing that could be compressed
    running.apply(triple("long", start=0, bindings={"X": text, "T": 0}), tau=0)
    found = running.read(
        "select bindings ->> 'X' from answers where run = :run and bindings ->> 'X' = %s", text
    )
    assert found == [(text,)]
    running.close()
