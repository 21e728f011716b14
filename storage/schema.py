"""The tables of a store: made where it is empty, brought up or down by the migrations.

They are in the first schema of the connection's search path (`public` unless the URL says
otherwise), so every name here is a plain one.
"""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, inspect, text

from storage import typed_views, version
from storage.errors import NotOurs, WrongVersion
from storage.models import Base

__all__ = ["downgrade", "prepare", "upgrade"]

_LOCK = 0x57686C737430  # one process at a time changes the schema of a store


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(version.folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _current(connection: Connection) -> str | None:
    return version.current(typed_views.raw(connection))


def prepare(engine: Engine, name: str) -> None:
    """Make the tables of an empty store; refuse one that holds tables of somebody else."""
    with engine.begin() as connection:
        # Alone: whoever makes the tables at this moment would pass for somebody else.
        connection.execute(text("select pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        if _current(connection) is None:
            ours = set(Base.metadata.tables)
            if foreign := sorted(ours & set(inspect(connection).get_table_names())):
                raise NotOurs(
                    f"{name} holds a table `{foreign[0]}` that is not ours: give whilst a database "
                    "or a schema (?options=-csearch_path%3Dwhilst) of its own"
                )
    upgrade(engine)


def upgrade(engine: Engine) -> None:
    """Bring a store to the version of this program."""
    _move(engine, version.head(), up=True)


def downgrade(engine: Engine, to: str) -> None:
    """Bring a store to an older version; `base` takes all tables away."""
    if to != "base" and to not in version.known():
        raise WrongVersion(f"there is no version {to}: it is one of {', '.join(version.known())}")
    _move(engine, to, up=False)


def _move(engine: Engine, to: str, *, up: bool) -> None:
    with engine.begin() as connection:
        connection.execute(text("select pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        before = _current(connection)
        if before == to:
            return
        if before is not None:
            typed_views.drop_all(connection)
        change = command.upgrade if up else command.downgrade
        change(_config(connection), to)
        if _current(connection) == version.head():
            typed_views.make_all(connection)
            grant(connection)


def grant(connection: Connection) -> None:
    """What writer and reader may do. On a server where these roles cannot be made, the owner is
    everything: then `whilst sql` reads in a read-only transaction of the owner."""
    roles = {
        row[0]
        for row in connection.execute(
            text("select rolname from pg_roles where rolname in ('whilst_writer', 'whilst_reader')")
        )
    }
    may_create = connection.execute(
        text("select rolsuper or rolcreaterole from pg_roles where rolname = current_user")
    ).scalar()
    for role in {"whilst_writer", "whilst_reader"} - roles:
        if not may_create:
            return
        connection.execute(text(f"create role {role} nologin"))
        connection.execute(text(f"grant {role} to current_user"))
    schema = connection.execute(text("select quote_ident(current_schema())")).scalar()
    later = f"alter default privileges in schema {schema} grant"
    everything = "select, insert, update, delete, truncate"
    for statement in (
        f"grant usage on schema {schema} to whilst_reader, whilst_writer",
        f"grant select on all tables in schema {schema} to whilst_reader",
        f"grant {everything} on all tables in schema {schema} to whilst_writer",
        f"grant usage on all sequences in schema {schema} to whilst_writer",
        f"{later} select on tables to whilst_reader",
        f"{later} {everything} on tables to whilst_writer",
        "revoke execute on function ensure_partitions(timestamptz) from public",
        "grant execute on function ensure_partitions(timestamptz) to whilst_writer",
    ):
        connection.execute(text(statement))
