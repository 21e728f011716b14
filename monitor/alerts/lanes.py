"""A lane for each endpoint: what is on its way to it, and whether it is worth trying."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime

from monitor.alerts import body
from monitor.alerts.backoff import Backoff
from monitor.alerts.outbox import Claimed, Result
from monitor.alerts.sending import Outcome, Sender, Target

log = logging.getLogger("whilst.alerts")

_AHEAD = 4
"""Alerts in hand for each that may be on its way: enough to send while the store is asked."""
_STRIKES = 8
"""Failures in a row after which an endpoint rests, and is then tried with one alert at a time."""
_RESTS = Backoff(first=1.0, factor=2.0, longest=60.0, attempts=10**9)


class Lane:
    """Sends what it is given, at most so many at once; tells `done` of each result."""

    def __init__(self, target: Target, backoff: Backoff, done: Callable[[Result], None]) -> None:
        self.target = target
        self._sender = Sender(target)
        self._backoff = backoff
        self._done = done
        self._queue: deque[Claimed] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._strikes = 0
        self._rests = 0
        self._rests_until = 0.0
        self._given_back: list[Claimed] = []
        self.closed = False

    @property
    def idle(self) -> bool:
        return not self._queue and not self._tasks

    def room(self, now: float) -> int:
        """How many alerts it takes now. Few at a time are not worth asking the store for."""
        if self.closed or now < self._rests_until:
            return 0
        in_hand = len(self._queue) + len(self._tasks)
        if self._strikes >= _STRIKES:
            return 1 if in_hand == 0 else 0
        most = self.target.alert.concurrency * _AHEAD
        return most - in_hand if in_hand <= most // 2 else 0

    def give(self, claimed: Claimed) -> None:
        self._queue.append(claimed)
        self._start()

    def take_up(self) -> None:
        """End a rest: somebody knows better than the last reply."""
        self._rests_until = 0.0

    def shut(self) -> None:
        """Send nothing more; what is on its way stays so."""
        self.closed = True
        self._give_back()

    def given_back(self) -> list[Claimed]:
        """Alerts that it was given and has not tried, since the last time this was asked."""
        given_back, self._given_back = self._given_back, []
        return given_back

    def forget(self) -> None:
        """The claims are void: what is queued is another's now."""
        self._queue.clear()
        self._given_back.clear()

    def abandon(self) -> None:
        """Wait no longer for what is on its way: whether it arrived is not known."""
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        self.shut()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._sender.close()

    def _start(self) -> None:
        while self._queue and len(self._tasks) < self.target.alert.concurrency:
            task = asyncio.create_task(self._deliver(self._queue.popleft()))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._start()

    async def _deliver(self, claimed: Claimed) -> None:
        sent_at = datetime.now(UTC)
        try:
            text = body.text(claimed.message, self.target.alert)
        except (KeyError, TypeError, ValueError) as error:
            outcome = Outcome(0.0, error=f"no body can be made of it: {error!r}", hopeless=True)
        else:
            outcome = await self._sender.send(claimed.message.webhook_id, text)
        self._judge(claimed, outcome)
        wait = self._wait(claimed, outcome)
        self._done(Result(claimed, outcome, sent_at, wait))

    def _wait(self, claimed: Claimed, outcome: Outcome) -> float | None:
        if outcome.delivered or outcome.hopeless:
            return None
        if outcome.gone:
            return 0.0  # it waits for the endpoint to be enabled again
        wait = self._backoff.wait(claimed.attempts + 1)
        return None if wait is None else max(wait, outcome.retry_after or 0.0)

    def _judge(self, claimed: Claimed, outcome: Outcome) -> None:
        """Learn from an outcome whether the endpoint rests.

        An alert that the receiver refuses again and again says nothing of the endpoint; new ones
        that are all refused do.
        """
        if outcome.delivered:
            if self._rests:
                log.info("alert %s is taken up again", self.target.alert.name)
            self._strikes = self._rests = 0
            self._rests_until = 0.0
        elif outcome.gone:
            if not self.closed:  # others on their way are told the same
                log.warning("alert %s: it replied 410 and is disabled", self.target.alert.name)
            self.shut()
        elif outcome.no_service or claimed.attempts == 0:
            self._strikes += 1
            now = asyncio.get_running_loop().time()
            if outcome.status == 429 and outcome.retry_after:
                self._rest(now + outcome.retry_after)
            elif self._strikes >= _STRIKES and now >= self._rests_until:
                self._rests += 1
                if self._rests == 1:
                    log.warning("alert %s rests: %s", self.target.alert.name, outcome.error)
                self._rest(now + (_RESTS.wait(self._rests) or 0.0))

    def _rest(self, until: float) -> None:
        self._rests_until = max(self._rests_until, until)
        self._give_back()

    def _give_back(self) -> None:
        self._given_back.extend(self._queue)
        self._queue.clear()
