"""A store, embedded or external: open it, check its version, get an engine or URL for a role.

SQLAlchemy and Alembic take a second to load: they come in with the first engine that is asked for,
or where a store has to be made. `whilst sql` needs neither.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from storage import embedded, version
from storage.errors import StoreError, translated

if TYPE_CHECKING:
    from sqlalchemy import Engine

__all__ = ["Store", "anywhere", "home_folder", "open_store"]


@dataclass(frozen=True, slots=True)
class Store:
    """An open store. `name` is how messages call it; it holds no password."""

    name: str
    embedded: bool
    _urls: dict[str, str] = field(repr=False)

    def url(self, role: str = "reader") -> str:
        """A `postgresql://` URL for `owner`, `writer` or `reader`, for psycopg and for others."""
        return self._urls[role]

    @contextlib.contextmanager
    def engine(self, role: str) -> Iterator[Engine]:
        """A SQLAlchemy engine for the role; errors of the server come out in our words."""
        from sqlalchemy import create_engine
        from sqlalchemy.exc import DBAPIError
        from sqlalchemy.pool import NullPool

        url = self.url(role)
        # No pool: the parts of whilst that need one connection for long hold it themselves.
        made = create_engine(
            "postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=NullPool
        )
        try:
            yield made
        except (DBAPIError, psycopg.Error) as error:
            raise translated(error, self.name) or error from error
        finally:
            made.dispose()


def home_folder() -> Path:
    """The folder of the embedded store and the checkpoints: WHILST_HOME, else `.whilst` here."""
    return Path(os.environ.get("WHILST_HOME") or ".whilst")


@contextlib.contextmanager
def open_store(
    url: str | None = None, home: Path | None = None, *, prepare: bool = True
) -> Iterator[Store]:
    """The store at the URL, or the embedded one of the folder. With `prepare`, tables are made in
    an empty one, and one of another version is refused."""
    if url is not None:
        store = _external(url)
        _prepare(store, prepare)
        yield _with_reader(store)
        return
    home = home_folder() if home is None else home
    with embedded.using(home) as connection:
        urls = {role: connection.url(role) for role in embedded.ROLES}
        store = Store(f"the store in {home}", True, urls)
        _prepare(store, prepare)
        yield store


def _prepare(store: Store, prepare: bool) -> None:
    try:
        with psycopg.connect(store.url("owner"), connect_timeout=10) as db:
            found = version.current(db)
    except psycopg.Error as error:
        raise translated(error, store.name) or error from error
    if not prepare or found == version.head():
        return
    if found is not None:
        raise version.wrong(found, store.name)
    from storage import schema

    with store.engine("owner") as engine:
        schema.prepare(engine, store.name)


def _external(url: str) -> Store:
    try:
        parts = urlsplit(url)
        plain = urlunsplit(parts._replace(scheme="postgresql"))
        reader = _with_options(plain, "-c default_transaction_read_only=on")
        conninfo_to_dict(plain)
        wrong = "@" in parts.path
    except (ValueError, psycopg.Error):  # they would show what they cannot read
        wrong = True
    if wrong:
        raise StoreError(
            "--store takes a URL like postgresql://user@host/database; "
            "in a password, write what is no letter or digit as %40 for @, %2F for /, and so on"
        )
    if parts.scheme not in ("postgresql", "postgres"):
        raise StoreError(
            f"--store takes a URL like postgresql://user@host/database, not one of {parts.scheme!r}"
        )
    name = f"the store at {parts.hostname or 'localhost'}{parts.path}"
    return Store(name, False, {"owner": plain, "writer": plain, "reader": reader})


def _with_reader(store: Store) -> Store:
    """The store with a reader that has no other rights, where the server has that role."""
    url = store.url("owner")
    with psycopg.connect(url) as db:
        found = db.execute(
            "select 1 from pg_roles where rolname = 'whilst_reader' "
            "and pg_has_role(oid, 'member') and has_table_privilege(oid, to_regclass('runs'), "
            "'select')"
        ).fetchone()
    if found is None:
        return store
    reader = _with_options(store.url("reader"), "-c role=whilst_reader")
    return Store(store.name, False, {**store._urls, "reader": reader})


def anywhere(url: str) -> str:
    """The URL with the password that this machine knows for it (`PGPASSWORD`, `~/.pgpass`), so
    that it works on machines that know none. Not to be shown."""
    parts = urlsplit(url)
    if parts.password is not None:
        return url
    with psycopg.connect(url) as db:
        user, password = db.info.user, db.info.password
    if not password:
        return url
    host = parts.netloc.rpartition("@")[2]
    secret = f"{quote(user, safe='')}:{quote(password, safe='')}@{host}"
    return urlunsplit(parts._replace(netloc=secret))


def _with_options(url: str, options: str) -> str:
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    query["options"] = f"{query.get('options', '')} {options}".strip()
    return urlunsplit(parts._replace(query=urlencode(query, quote_via=quote)))
