"""The deliverer: takes alerts from the outbox to their endpoints. Several may run at once.

Each endpoint has a lane of its own, with its own connections and limits, so that a slow or a dead
one delays no other. What is in hand is bounded, however much waits in the outbox. An alert is sent
first and then written down as delivered: if the deliverer dies in between, another sends it again,
under the same id.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress

import psycopg

from monitor.alerts.backoff import Backoff
from monitor.alerts.errors import AlertError
from monitor.alerts.lanes import Lane, log
from monitor.alerts.outbox import Presence, Result, Session
from monitor.alerts.sending import Target
from storage.errors import StoreError, StoreRefused, one_line, translated
from storage.writer import CHANNEL

_IDLE = 0.5
"""Seconds between two looks for alerts that are due again."""
_GATHER = 0.01
"""Seconds in which results gather, to be written down together."""
_RELOAD = 2.0
"""Seconds between two looks at the endpoints and at their secrets."""
_GRACE = 10.0
"""Seconds that what is on its way has left when it is stopped."""
_RESOLVERS = 64
"""Threads that resolve names: one that hangs holds up no other."""


class Deliverer:
    """Delivers from one store. `run` until `stop`; with `once` until nothing is due."""

    def __init__(self, url: str, *, backoff: Backoff | None = None, once: bool = False) -> None:
        self._url = url
        self._backoff = backoff or Backoff()
        self._once = once
        self._lanes: dict[int, Lane] = {}
        self._retired: list[Lane] = []
        self._results: list[Result] = []
        self._troubles: dict[str, str] = {}
        self._stopping = False
        self._wake = asyncio.Event()
        self._connect_again = Backoff(first=0.2, factor=2.0, longest=10.0, attempts=10**9)
        self.delivered = 0
        self.failed = 0

    @property
    def troubles(self) -> dict[str, str]:
        """Endpoints that cannot be sent to, and why."""
        return dict(self._troubles)

    def stop(self) -> None:
        """Take no more; `run` returns when what is on its way has been written down."""
        if not self._stopping:
            self._stopping = True
            self._wake.set()
            asyncio.get_running_loop().call_later(_GRACE, self._abandon)

    def _abandon(self) -> None:
        for lane in self._all_lanes():
            lane.abandon()

    def finish(self, seconds: float) -> None:
        """Stop when nothing is due any more, or after so many seconds."""
        self._once = True
        self._wake.set()
        asyncio.get_running_loop().call_later(seconds, self.stop)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(_RESOLVERS, "whilst-names"))
        failures = 0
        try:
            while True:
                try:
                    await self._session()
                    return
                except psycopg.Error as error:
                    ours = translated(error) or StoreError(f"the store failed: {one_line(error)}")
                    if self._once or self._stopping or isinstance(ours, StoreRefused):
                        raise ours from error
                    failures += 1
                    log.warning("alerts wait: %s", ours)
                    with suppress(TimeoutError):
                        wait = self._connect_again.wait(failures)
                        await asyncio.wait_for(self._wake.wait(), wait)
        finally:
            for lane in self._all_lanes():
                await lane.close()

    # --- one session with the store --------------------------------------------------------------

    async def _session(self) -> None:
        for lane in self._all_lanes():
            lane.forget()
        async with AsyncExitStack() as stack:
            there = await stack.enter_async_context(await Session.connected(self._url))
            presence = Presence(there)
            await presence.announce(CHANNEL)
            db = await stack.enter_async_context(await Session.connected(self._url))
            session = Session(db, presence)
            listener = asyncio.create_task(self._listen(presence))
            try:
                await self._pump(session, listener)
            finally:
                listener.cancel()
                await asyncio.wait([listener])

    async def _listen(self, presence: Presence) -> None:
        while True:
            for number in await presence.heard():
                if number in self._lanes:
                    self._lanes[number].take_up()
            self._wake.set()

    async def _pump(self, session: Session, listener: asyncio.Task[None]) -> None:
        loop = asyncio.get_running_loop()
        reload_at = loop.time()
        while True:
            if listener.done():
                listener.result()  # raises: the session is lost, and with it every claim
            if loop.time() >= reload_at:
                await self._reload(session)
                reload_at = loop.time() + _RELOAD
            self._wake.clear()
            if self._stopping:
                for lane in self._lanes.values():
                    lane.shut()
            await self._write_down(session)
            claimed = 0 if self._stopping else await self._claim(session)
            if claimed == 0 and (self._stopping or self._once) and self._all_done():
                return
            if claimed == 0:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), _IDLE)
            await asyncio.sleep(_GATHER)

    async def _claim(self, session: Session) -> int:
        now = asyncio.get_running_loop().time()
        rooms = {number: room for number, lane in self._lanes.items() if (room := lane.room(now))}
        if not rooms:
            return 0
        claimed = await session.claim(rooms)
        for one in claimed:
            self._lanes[one.endpoint].give(one)
        return len(claimed)

    async def _write_down(self, session: Session) -> None:
        if self._results:
            results = list(self._results)
            await session.finish(results)
            del self._results[: len(results)]
        if given_back := [one for lane in self._all_lanes() for one in lane.given_back()]:
            await session.release(given_back)

    def _all_done(self) -> bool:
        return not self._results and all(lane.idle for lane in self._all_lanes())

    def _all_lanes(self) -> tuple[Lane, ...]:
        return (*self._lanes.values(), *self._retired)

    def _done(self, result: Result) -> None:
        self._results.append(result)
        self._wake.set()
        if result.outcome.delivered:
            self.delivered += 1
        else:
            self.failed += 1

    # --- lanes -----------------------------------------------------------------------------------

    async def _reload(self, session: Session) -> None:
        """Bring the lanes to what the store and the secrets say now."""
        endpoints = await session.endpoints()
        wanted = {}
        troubles = {}
        for endpoint in endpoints:
            try:
                wanted[endpoint.id] = Target.of(endpoint.alert)
            except AlertError as error:
                troubles[endpoint.alert.name] = str(error)
        for number, lane in list(self._lanes.items()):
            if lane.closed or wanted.get(number) != lane.target:
                lane.shut()
                self._retired.append(self._lanes.pop(number))
        for number, target in wanted.items():
            if number not in self._lanes:
                try:
                    self._lanes[number] = Lane(target, self._backoff, self._done)
                except AlertError as error:
                    troubles[target.alert.name] = str(error)
        for name, trouble in troubles.items():
            if self._troubles.get(name) != trouble:
                log.warning("alert %s: %s", name, trouble)
        self._troubles = troubles
        await session.note(
            {
                endpoint.id: trouble
                for endpoint in endpoints
                if (trouble := troubles.get(endpoint.alert.name)) != endpoint.status_reason
            }
        )
        for lane in [lane for lane in self._retired if lane.idle]:
            self._retired.remove(lane)
            await lane.close()
