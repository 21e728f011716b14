"""What can go wrong with the store, each said in one line that names the next step.

StoreError
├── StoreDown         nobody answers
├── StoreRefused      wrong password, or no right to do it
├── StoreFull         no room left on its disk
├── StoreReadOnly     a standby, or set to read only
├── WrongVersion      its schema is older or newer than this program
├── NotOurs           a database that holds somebody else's tables
├── EmbeddedFailed    the embedded server could not be made or started
└── QueryError        a statement of the user that the store refused
"""

from __future__ import annotations

import re

import psycopg
from psycopg import errors as pg

__all__ = [
    "EmbeddedFailed",
    "NotOurs",
    "QueryError",
    "StagingLost",
    "StoreDown",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreRefused",
    "WrongVersion",
    "translated",
]


class StoreError(Exception):
    """Base of all; `str()` is the line to show."""

    retry = False
    """Whether the same call may succeed later without anybody changing the call."""


class StoreDown(StoreError):
    retry = True


class StoreRefused(StoreError):
    pass


class StoreFull(StoreError):
    retry = True


class StoreReadOnly(StoreError):
    retry = True


class StagingLost(StoreError):
    """Not to be tried again as it is: the batch has to be computed again."""


class WrongVersion(StoreError):
    pass


class NotOurs(StoreError):
    pass


class EmbeddedFailed(StoreError):
    pass


class QueryError(StoreError):
    pass


def translated(error: BaseException, where: str = "the store") -> StoreError | None:
    """The error of ours that says the same as one of psycopg (also inside one of SQLAlchemy)."""
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, StoreError):
        return cause
    if not isinstance(cause, psycopg.Error):
        return None
    text = one_line(cause)
    match cause:
        case pg.DiskFull() | pg.OutOfMemory() | pg.ProgramLimitExceeded():
            return StoreFull(f"{where} has no room left ({text}): free some, or `whilst db prune`")
        case pg.ReadOnlySqlTransaction():
            return StoreReadOnly(f"{where} takes no writes ({text}): is it a standby or read-only?")
        case pg.InsufficientPrivilege() | pg.InvalidAuthorizationSpecification():
            return StoreRefused(f"{where} refused us ({text}): check user, password and rights")
        case psycopg.OperationalError() if _NO_DATABASE.search(text):
            return StoreDown(f"{where} does not exist ({text}): create the database first")
        case psycopg.OperationalError() if _NO_ROOM.search(text):
            return StoreFull(f"{where} has no room left ({text}): free some, or `whilst db prune`")
        case psycopg.OperationalError() if _REFUSED.search(text):
            return StoreRefused(f"{where} refused us ({text}): check user, password and rights")
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return StoreDown(f"{where} does not answer ({text}): start it, or check the address")
    return None


_NO_ROOM = re.compile(r"No space left|could not extend file", re.I)
_NO_DATABASE = re.compile(r"database .* does not exist", re.I)
_PREFIX = re.compile(r"^connection failed: |connection to server (at|on) .*?failed: |FATAL: +")
_REFUSED = re.compile(r"password|authentication|no pg_hba\.conf entry|permission denied", re.I)


def one_line(error: psycopg.Error) -> str:
    """The message of the server in one line, without secrets (libpq prints none)."""
    text = " ".join((error.diag.message_primary or str(error)).split())
    return _PREFIX.sub("", text) or type(error).__name__
