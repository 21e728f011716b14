"""A deliverer in a thread of its own, beside a run."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

import psycopg

from monitor.alerts import outbox
from monitor.alerts.backoff import Backoff
from monitor.alerts.deliverer import Deliverer
from monitor.alerts.lanes import log


class Background:
    """Delivers until `stop`. What is not delivered by then stays in the outbox for the next one."""

    def __init__(self, url: str, backoff: Backoff | None = None) -> None:
        self._url = url
        self._loop = asyncio.new_event_loop()
        self._deliverer = Deliverer(url, backoff=backoff)
        self._thread = threading.Thread(target=self._run, name="whilst-alerts", daemon=True)
        self._thread.start()

    def stop(self, drain: float = 0.0) -> None:
        """End it; with `drain`, first let it deliver what is due, for that many seconds."""
        with suppress(RuntimeError):  # it has ended by itself, and said why
            if drain > 0:
                self._loop.call_soon_threadsafe(self._deliverer.finish, drain)
            else:
                self._loop.call_soon_threadsafe(self._deliverer.stop)
        self._thread.join()
        with suppress(psycopg.Error):  # the run says itself where it has lost the store
            if left := outbox.waiting(self._url):
                log.warning(
                    "alerts that wait in the store: %d; `whilst deliver` sends them, "
                    "and `whilst alerts list` says what failed",
                    left,
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                runner.run(self._deliverer.run())
            except Exception as error:
                log.error("alerts are not delivered any more: %s", error)
