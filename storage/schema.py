"""The version of a store: made if it is empty, refused if it is another, brought up or down.

The tables are in the first schema of the connection's search path (`public` unless the URL says
otherwise), so every name here is a plain one.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect, text

from storage import typed_views
from storage.errors import NotOurs, StoreError, WrongVersion
from storage.models import Base

__all__ = ["check", "current", "downgrade", "head", "prepare", "upgrade"]

_LOCK = 0x57686C737430  # one process at a time changes the schema of a store


def _config(connection: Connection | None = None) -> Config:
    found = importlib.util.find_spec("migrations")
    if found is None or found.origin is None:
        raise StoreError("the package `migrations` is not installed: install whilst again")
    config = Config()
    config.set_main_option("script_location", str(Path(found.origin).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def head() -> str:
    """The version that this program writes and reads."""
    newest = ScriptDirectory.from_config(_config()).get_current_head()
    assert newest is not None
    return newest


def current(connection: Connection) -> str | None:
    """The version of a store; None where there is none yet."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("select version_num from alembic_version")).scalar()


def check(connection: Connection, name: str) -> None:
    """Raise WrongVersion unless the store is of our version."""
    version = current(connection)
    if version == head():
        return
    if version is None:
        raise WrongVersion(f"{name} is empty: `whilst db upgrade` makes its tables")
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if version in known:
        raise WrongVersion(
            f"{name} has schema version {version}, this whilst has {head()}: "
            "bring it up with `whilst db upgrade`"
        )
    raise WrongVersion(
        f"{name} has schema version {version}, which this whilst ({head()}) does not know: "
        "use the newer whilst that wrote it, or bring it down with that one's `whilst db downgrade`"
    )


def prepare(engine: Engine, name: str) -> None:
    """Make the tables of an empty store; refuse one of another version or of somebody else."""
    with engine.connect() as connection:
        if current(connection) is not None:
            check(connection, name)
            return
        ours = set(Base.metadata.tables)
        if foreign := sorted(ours & set(inspect(connection).get_table_names())):
            raise NotOurs(
                f"{name} holds a table `{foreign[0]}` that is not ours: give whilst a database "
                "or a schema (?options=-csearch_path%3Dwhilst) of its own"
            )
    upgrade(engine)


def upgrade(engine: Engine, version: str = "head") -> None:
    _move(engine, version, up=True)


def downgrade(engine: Engine, version: str) -> None:
    _move(engine, version, up=False)


def _move(engine: Engine, version: str, *, up: bool) -> None:
    with engine.begin() as connection:
        connection.execute(text("select pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        before = current(connection)
        if up and before == head():
            return
        if before is not None:
            typed_views.drop_all(connection)
        change = command.upgrade if up else command.downgrade
        change(_config(connection), version)
        if current(connection) == head():
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
    everything = "select, insert, update, delete, truncate"
    for statement in (
        f"grant usage on schema {schema} to whilst_reader, whilst_writer",
        f"grant select on all tables in schema {schema} to whilst_reader",
        f"grant {everything} on all tables in schema {schema} to whilst_writer",
        f"grant usage on all sequences in schema {schema} to whilst_writer",
        f"alter default privileges in schema {schema} grant select on tables to whilst_reader",
        f"alter default privileges in schema {schema} grant {everything} on tables to whilst_writer",
        "revoke execute on function ensure_partitions(timestamptz) from public",
        "grant execute on function ensure_partitions(timestamptz) to whilst_writer",
    ):
        connection.execute(text(statement))
