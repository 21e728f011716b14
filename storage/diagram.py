"""The tables of the store as a Mermaid diagram, drawn from the models."""

from __future__ import annotations

from sqlalchemy import Column, Table
from sqlalchemy.dialects import postgresql

from storage.models import Base

__all__ = ["mermaid"]

_MEANT = {"run": "runs", "outbox": "outbox", "endpoint": "endpoints"}
"""Columns that name a row of another table without a foreign key: of a partition or a log."""


def mermaid() -> str:
    lines = ["erDiagram"]
    tables = sorted(Base.metadata.tables.values(), key=lambda table: table.name)
    for table in tables:
        lines += [f"    {parent} ||--o{{ {table.name} : {column}" for parent, column in _up(table)]
    for table in tables:
        lines.append(f"    {table.name} {{")
        lines += [f"        {_line(column)}" for column in table.columns]
        lines.append("    }")
    return "\n".join(lines) + "\n"


def _up(table: Table) -> list[tuple[str, str]]:
    """The tables that this one's rows belong to, with the column that says so."""
    found = []
    for column in table.columns:
        if column.foreign_keys:
            found += [(key.column.table.name, column.name) for key in column.foreign_keys]
        elif _MEANT.get(column.name, table.name) != table.name:
            found.append((_MEANT[column.name], column.name))
    return found


def _line(column: Column[object]) -> str:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    kind = column.type.compile(dialect=dialect).lower()
    kind = {"timestamp with time zone": "timestamptz", "double precision": "double"}.get(kind, kind)
    key = " PK" if column.primary_key else " FK" if column.foreign_keys else ""
    said = (column.comment or "").replace('"', "'")
    return f'{kind.replace(" ", "_")} {column.name}{key} "{said}"'
