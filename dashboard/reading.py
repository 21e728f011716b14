"""The one way from the pages to the store: few connections, and answers that viewers share.

A query is asked again at the earliest after `_FRESH` seconds, and a slow one after ten times as
long as it took: however many people look, a view takes at most a tenth of one connection's time.
Where the store is down, what was read last is shown again, and `trouble` says since when.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg

from storage.errors import StoreDown, StoreError, translated

__all__ = ["Database", "Source", "TooSlow", "Trouble"]

_FRESH = 0.4
_REMEMBERED = 512
_IDLE = 4
_LIMIT_MS = 8_000
_PAUSE = 1.0
"""Seconds after a failure before the store is asked again."""

Database = psycopg.Connection[Any]
Value = TypeVar("Value")


class TooSlow(StoreError):
    """A question that takes the store too long."""


@dataclass(frozen=True, slots=True)
class Trouble:
    reason: str
    since: float
    """Seconds since 1970."""


@dataclass(slots=True)
class _Kept:
    lock: threading.Lock = field(default_factory=threading.Lock)
    value: Any = None
    until: float = 0.0
    known: bool = False
    slow: TooSlow | None = None
    """Where it took too long: so it would again."""

    def rests(self, began: float) -> None:
        """Not asked again before ten times as long as it took has passed."""
        now = time.monotonic()
        self.until = now + max(_FRESH, 10 * (now - began))


class Source:
    """Reads a store by the reader's role, from many threads."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[Database] = []
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._lock = threading.Lock()
        self._trouble: Trouble | None = None
        self._again = 0.0

    @property
    def trouble(self) -> Trouble | None:
        return self._trouble

    def ask(self, question: Callable[..., Value], *args: Hashable) -> Value:
        """What the question finds in the store, now or a moment ago; else what it found last."""
        kept = self._remembered((question, *args))
        with kept.lock:
            known: Value = kept.value
            began = time.monotonic()
            if kept.until > began:
                if kept.slow is not None:
                    raise kept.slow
                return known
            try:
                with self._database() as db:
                    known = question(db, *args)
            except TooSlow as error:
                kept.slow = error
                kept.rests(began)
                raise
            except StoreError:
                if not kept.known:
                    raise
                return known
            kept.value, kept.known, kept.slow = known, True, None
            kept.rests(began)
            return known

    def read(self, question: Callable[..., Value], *args: Any) -> Value:
        """What the question finds now; nothing is remembered."""
        with self._database() as db:
            return question(db, *args)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()

    def _remembered(self, key: Hashable) -> _Kept:
        with self._lock:
            kept = self._kept.setdefault(key, _Kept())
            self._kept.move_to_end(key)
            while len(self._kept) > _REMEMBERED:
                self._kept.popitem(last=False)
            return kept

    @contextlib.contextmanager
    def _database(self) -> Iterator[Database]:
        with self._lock:
            if self._trouble is not None and time.monotonic() < self._again:
                raise StoreDown(self._trouble.reason)
            db = self._idle.pop() if self._idle else None
        try:
            db = db or self._connected()
            yield db
        except pg.QueryCanceled:
            self._give_back(db)
            raise TooSlow(
                f"this takes the store longer than {_LIMIT_MS // 1000} seconds: narrow the filters"
            ) from None
        except psycopg.Error as error:
            if db is not None:
                db.close()
            ours = translated(error)
            if ours is None:
                raise
            self._failed(ours)
            raise ours from error
        except BaseException:
            self._give_back(db)
            raise
        self._trouble = None
        self._give_back(db)

    def _connected(self) -> Database:
        db = psycopg.connect(
            self._url,
            autocommit=True,
            connect_timeout=2,
            application_name="whilst dashboard",
            prepare_threshold=None,  # a plan for any filter is the wrong one for this
        )
        db.execute("set default_transaction_read_only = on")
        db.execute(f"set statement_timeout = {_LIMIT_MS}")
        return db

    def _failed(self, error: StoreError) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
            since = self._trouble.since if self._trouble else time.time()
            self._trouble = Trouble(str(error), since)
            self._again = time.monotonic() + _PAUSE
        for db in idle:
            db.close()

    def _give_back(self, db: Database | None) -> None:
        if db is None or db.closed:
            return
        with self._lock:
            if len(self._idle) < _IDLE:
                self._idle.append(db)
                return
        db.close()
