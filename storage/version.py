"""The version of a store's schema, without Alembic: migrations are numbered files, in order."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import psycopg

from storage.errors import StoreError, WrongVersion

__all__ = ["current", "folder", "head", "known", "of", "wrong"]


def folder() -> Path:
    """Where the migrations are."""
    found = importlib.util.find_spec("migrations")
    if found is None or found.origin is None:
        raise StoreError("the package `migrations` is not installed: install whilst again")
    return Path(found.origin).parent


def known() -> list[str]:
    """Every version there has been, oldest first."""
    return sorted(path.name[:4] for path in (folder() / "versions").glob("[0-9]*.py"))


def head() -> str:
    """The version that this program writes and reads."""
    return known()[-1]


def current(db: psycopg.Connection[Any]) -> str | None:
    """The version of a store; None where there is none yet."""
    there = db.execute("select to_regclass('alembic_version')").fetchone()
    if there is None or there[0] is None:
        return None
    row = db.execute("select version_num from alembic_version").fetchone()
    return None if row is None else str(row[0])


def of(url: str) -> str | None:
    """The version of the store there."""
    with psycopg.connect(url) as db:
        return current(db)


def wrong(found: str | None, name: str) -> WrongVersion:
    """What to say of a store of another version."""
    if found is None:
        return WrongVersion(f"{name} has no tables yet: `whilst db upgrade` makes them")
    if found in known():
        return WrongVersion(
            f"{name} has schema version {found}, this whilst has {head()}: "
            "bring it up with `whilst db upgrade`"
        )
    return WrongVersion(
        f"{name} has schema version {found}, which this whilst ({head()}) does not know: use the "
        "newer whilst that wrote it, or bring it down with that one's `whilst db downgrade`"
    )
