"""`whilst sql`: it reads, it stops, it shows where a mistake is; and it can do nothing else."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable

import psycopg
import pytest
from typer.testing import CliRunner

from storage.errors import QueryError
from storage.printing import write
from storage.reading import Rows, read
from storage.store import Store
from tests.storage.changes import Running, a_program, triple

Whilst = Callable[..., "tuple[int, str, str]"]


@pytest.fixture
def whilst(store: Store, monkeypatch: pytest.MonkeyPatch, home: object) -> Whilst:
    """The command line on the store."""
    from monitor.cli import app

    if store.embedded:
        monkeypatch.setenv("WHILST_HOME", str(home))

    def call(*arguments: str, stdin: str = "", named: bool = True) -> tuple[int, str, str]:
        more = () if store.embedded or not named else ("--store", store.url("owner"))
        result = CliRunner().invoke(app, [*arguments, *more], input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, result.stdout, result.stderr

    return call


WRITES = [
    "delete from runs",
    "update runs set current = false",
    "insert into retention values ('x', 1)",
    "drop table triples cascade",
    "truncate programs cascade",
    "create table mine (x int)",
    "create temp table mine (x int)",
    "copy (select 1) to program 'touch /tmp/x'",
    "copy runs from program 'echo 1'",
    "select nextval('runs_id_seq')",
    "select lo_create(0)",
    "select pg_read_file('/etc/passwd')",
    "with gone as (delete from runs returning *) select * from gone",
    "do $$ begin delete from runs; end $$",
    "do $$ begin commit; delete from runs; end $$",
    "alter role whilst_reader superuser",
    "select pg_reload_conf()",
    "select ensure_partitions(now())",
    "grant all on runs to whilst_reader",
    "vacuum runs",
]


@pytest.mark.parametrize("statement", WRITES)
def test_nothing_can_be_written(whilst: Whilst, statement: str) -> None:
    code, out, err = whilst("sql", statement)
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert "Traceback" not in err


@pytest.mark.parametrize("statement", [s for s in WRITES if s != "vacuum runs"])
def test_the_role_alone_writes_nothing_either(embedded_store: Store, statement: str) -> None:
    """Without the read-only transaction that `whilst sql` adds."""
    with (
        psycopg.connect(embedded_store.url("reader"), autocommit=True) as db,
        pytest.raises(psycopg.Error),
    ):
        db.execute(statement)


@pytest.mark.parametrize("secret", ["pg_authid", "pg_shadow", "pg_user_mapping"])
def test_the_reader_sees_no_passwords(embedded_store: Store, secret: str) -> None:
    with pytest.raises(QueryError, match="only reads: permission denied"):
        read(embedded_store.url("reader"), f"select * from {secret}", 5)


def test_one_statement_and_no_way_out(whilst: Whilst) -> None:
    for statement in (
        "commit; delete from runs",
        "rollback; drop table runs",
        "select 1; select 2",
    ):
        code, _, err = whilst("sql", statement)
        assert code == 1
        assert "one statement at a time" in err


def test_what_takes_too_long_is_stopped(whilst: Whilst) -> None:
    code, _, err = whilst(
        "sql", "select count(*) from generate_series(1, 1000000000)", "--timeout", "200ms"
    )
    assert code == 1
    assert "stopped after 0.2 s" in err
    assert "--timeout" in err
    code, _, err = whilst("sql", "select pg_sleep(60)", "--timeout", "200ms")
    assert code == 1


def test_a_mistake_is_shown_at_its_place(whilst: Whilst) -> None:
    code, _, err = whilst("sql", "select answer\nfrom pending_answer", "--timeout", "5s")
    assert code == 1
    lines = err.splitlines()
    assert lines[0].startswith('error: relation "pending_answer" does not exist (the views are ')
    assert "pending_answers, " in lines[0]
    assert lines[1:] == ["  line 2, column 6:", "    from pending_answer", "         ^"]


@pytest.mark.parametrize("empty", ["", "  ", ";", "/* only a comment */"])
def test_no_statement_says_so(whilst: Whilst, empty: str) -> None:
    code, out, err = whilst("sql", empty, "--format", "json")
    assert (code, out) == (1, "")
    assert "there is no statement" in err


def test_a_statement_without_rows_says_so(whilst: Whilst) -> None:
    code, _, err = whilst("sql", "set search_path = nowhere")
    assert code == 1
    assert "gives no rows" in err


def test_formats(whilst: Whilst, store: Store) -> None:
    running = Running(store, a_program())
    running.apply(triple('Malf("x\ny", 1)', ['a "b"'], ["h"], start=1, deadline=4), tau=1)
    select = (
        "select answer, evidence, deadline, reason, 1.50 as n, answer_id is null as no, "
        f"recorded_at > '2000-01-01' as yes from pending_answers where run = {running.run}"
    )
    code, out, _ = whilst("sql", select, "--format", "json")
    assert code == 0
    assert json.loads(out) == [
        {
            "answer": 'Malf("x\ny", 1)',
            "evidence": ['a "b"'],
            "deadline": 4,
            "reason": None,
            "n": 1.5,
            "no": False,
            "yes": True,
        }
    ]
    assert out.count("\n") == 3
    _, out, _ = whilst("sql", select, "--format", "csv")
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[1] == ['Malf("x\ny", 1)', '["a \\"b\\""]', "4", "", "1.5", "false", "true"]
    _, out, _ = whilst("sql", select)
    assert out.splitlines()[2].startswith('Malf("x\\ny", 1)')
    assert out.endswith("(1 row)\n")
    running.close()


def test_no_rows(whilst: Whilst) -> None:
    none = "select id, name from runs where false"
    assert whilst("sql", none, "--format", "json")[1] == "[]\n"
    assert whilst("sql", none, "--format", "csv")[1] == "id,name\n"
    assert whilst("sql", none)[1].splitlines() == ["id  name", "--  ----", "(0 rows)"]


def test_a_file_and_standard_input(whilst: Whilst, tmp_path: object) -> None:
    file = tmp_path / "ask.sql"  # type: ignore[operator]
    file.write_text("select 1 as a;\n")
    for arguments, stdin in [
        (("--file", str(file)), ""),
        (("-",), "select 1 as a"),
        (("--file", "-"), "select 1 as a"),
        ((), "select 1 as a"),
    ]:
        code, out, _ = whilst("sql", *arguments, "--format", "csv", stdin=stdin)
        assert (code, out) == (0, "a\n1\n")
    assert whilst("sql", "--file", "/no/such/file")[0] == 2
    assert whilst("sql", "select 1", "--file", str(file))[0] == 2
    assert whilst("sql", "select 1", "--timeout", "soon")[0] == 2


def test_rows_are_not_gathered(embedded_store: Store) -> None:
    """Rows come one at a time: the first is there before the last could be."""
    rows = iter(
        read(embedded_store.url("reader"), "select * from generate_series(1, 10000000)", 30)
    )
    assert next(rows) == (1,)


def test_a_terminal_is_safe() -> None:
    out = io.StringIO()
    write(Rows(["a", "寿"], iter([("\x1b[31mred\x07", "x"), (None, "y")])), "table", out)
    assert "\x1b" not in out.getvalue()
    assert out.getvalue().splitlines()[2] == "\\x1b[31mred\\x07  x"


def test_looking_after_the_store(whilst: Whilst, store: Store) -> None:
    running = Running(store, a_program())
    running.apply(triple("a", start=0), tau=0)
    code, out, _ = whilst("db", "status")
    assert code == 0
    assert f"run {running.run} of {running.program.name}: running, τ = 0" in out
    assert "kept: " in out
    assert whilst("db", "upgrade")[0] == 0
    assert whilst("db", "prune", "--dry-run")[0] == 0
    assert whilst("db", "prune", "--keep", "history=soon")[0] == 2
    code, _, err = whilst("db", "prune", "--keep", "all=1")
    assert code == 1
    assert "one of late_facts" in err
    code, out, _ = whilst("db", "url", "--role", "reader")
    with psycopg.connect(out.strip()) as db:
        assert db.execute("select count(*) >= 1 from runs").fetchone() == (True,)
    assert whilst("db", "url", "--role", "admin")[0] == 2
    assert whilst("db", "diagram", named=False)[1].startswith("erDiagram")
    running.close()
