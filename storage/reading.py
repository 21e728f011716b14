"""Reading for people: one statement, read-only, with a time limit, its rows as they come."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import psycopg
from psycopg import errors as pg
from psycopg import pq
from psycopg.rows import tuple_row

from storage.errors import QueryError, StoreRefused, one_line, translated

__all__ = ["Rows", "read"]


class Rows:
    """The columns of a result, and its rows, once, one at a time."""

    def __init__(self, columns: list[str], rows: Iterator[tuple[Any, ...]]) -> None:
        self.columns = columns
        self._rows = rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._rows


def read(url: str, statement: str, seconds: float) -> Rows:
    """Run one statement of a person by the reader's role.

    Three fences: the role may not write; the transaction is read-only, and has read already, so
    that it cannot be made another; and the protocol takes one statement, so that none can end it.
    """
    rows = _rows(url, statement, seconds)
    columns = list(next(rows))
    first = list(islice(rows, 1))  # what is wrong with the statement is told here
    return Rows(columns, chain(first, rows))


def _rows(url: str, statement: str, seconds: float) -> Iterator[tuple[Any, ...]]:
    try:
        with psycopg.connect(url, connect_timeout=10, application_name="whilst sql") as db:
            db.execute("set transaction read only")
            db.execute(f"set local statement_timeout = {max(1, round(seconds * 1000))}")
            db.execute("select 1")
            yield tuple(_columns(db, statement))
            with db.cursor(row_factory=tuple_row) as cursor:
                yield from cursor.stream(statement)
    except psycopg.Error as error:
        raise _told(error, statement, seconds) from None


def _columns(db: psycopg.Connection[Any], statement: str) -> list[str]:
    """Names of the columns, each once; the server tells them before there are rows."""
    encoding = "utf-8"
    described = db.pgconn.prepare(b"", statement.encode(encoding))
    if described.status == pq.ExecStatus.COMMAND_OK:
        described = db.pgconn.describe_prepared(b"")
    if described.status != pq.ExecStatus.COMMAND_OK:
        raise pg.error_from_result(described, encoding)
    names: list[str] = []
    for place in range(described.nfields):
        plain = name = (described.fname(place) or b"").decode(encoding)
        number = 1
        while name in names:
            number += 1
            name = f"{plain}_{number}"
        names.append(name)
    return names


def _told(error: psycopg.Error, statement: str, seconds: float) -> Exception:
    match error:
        case pg.QueryCanceled():
            return QueryError(
                f"stopped after {seconds:g} s: ask for less, or give more time with --timeout"
            )
        case pg.ReadOnlySqlTransaction() | pg.InsufficientPrivilege():
            return QueryError(f"`whilst sql` only reads: {one_line(error)}")
        case psycopg.OperationalError() if error.sqlstate is None:
            return translated(error) or error
        case pg.InvalidPassword() | pg.InvalidAuthorizationSpecification():
            return StoreRefused(str(translated(error)))
    return QueryError(_placed(error, statement))


def _placed(error: psycopg.Error, statement: str) -> str:
    """The message with the line of the statement and a caret under the place."""
    message = one_line(error)
    if "EMPTY_QUERY" in message:
        return 'there is no statement: whilst sql "select * from pending_answers"'
    if "didn't produce a result" in message:
        return "that statement gives no rows: begin with `select`"
    if "multiple commands" in message:
        return "one statement at a time: leave out what follows the first `;`"
    if isinstance(error, pg.UndefinedTable):
        message += " (the views are pending_answers, confirmed_answers, refuted_answers, "
        message += "answer_history, late_facts, rejected_events, and one for each query)"
    if hint := error.diag.message_hint:
        message += f" ({' '.join(hint.split())})"
    position = error.diag.statement_position
    if position is None:
        return message
    place = int(position) - 1
    start = statement.rfind("\n", 0, place) + 1
    line = statement[start:].split("\n", 1)[0]
    number, column = statement.count("\n", 0, place) + 1, place - start + 1
    # Tabs stay tabs in the margin, so that the caret stands under its place in any terminal.
    margin = "".join("\t" if c == "\t" else " " for c in line[: column - 1])
    return f"{message}\n  line {number}, column {column}:\n    {line}\n    {margin}^"
