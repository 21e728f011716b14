"""Time points as people read them: local time where a program counts from 1970, else τ alone."""

from __future__ import annotations

import re
import time
from collections.abc import Collection
from dataclasses import dataclass

from dashboard.markup import Node, h

__all__ = ["Clock", "duration"]

_YEAR = 365 * 86_400_000
_DAY = 86_400_000
_GROUND = re.compile(r"[(,]\s*(\d{1,18})\)$")
_COMPARED = re.compile(r"^([A-Za-z_]\w*)[+-]?\d* (?:[<>]=?|=) (\d{1,18})$")
_LAST = 253_402_300_799_999  # the end of the year 9999, beyond which browsers write no dates


@dataclass(frozen=True, slots=True)
class Clock:
    """How the time points of one run are shown.

    `tau` is the last complete time point. A program whose time points are the calendar's is shown
    in local time; one that counts from nothing (τ in 1970) is shown in time points. While the run
    goes with the wall clock, deadlines are counted down; in a replay they are told from τ.
    """

    unit: int | None
    tau: int | None
    running: bool
    seen: float
    """Seconds since 1970 at which the store last heard of the run."""

    @property
    def by_calendar(self) -> bool:
        return self.tau is not None and self._dated(self.tau)

    def _dated(self, tau: int) -> bool:
        """Whether a time point is one of the calendar's: later than 1970, and not after 9999."""
        return self.unit is not None and _YEAR < tau * self.unit <= _LAST

    @property
    def ticks(self) -> bool:
        """Whether τ goes with the wall clock."""
        return self.running and self.by_calendar and abs(self.now - self.seen * 1000) < _DAY

    @property
    def now(self) -> float:
        """The end of the last complete time point, in milliseconds since 1970."""
        assert self.unit is not None
        assert self.tau is not None
        return (self.tau + 1) * self.unit

    def position(self) -> float:
        """Now as a fraction of time points: by the wall clock where it ticks, else τ."""
        if self.ticks:
            assert self.unit is not None
            return time.time() * 1000 / self.unit
        return float(self.tau or 0)

    def at(self, tau: int | None) -> Node:
        """A time point, with τ on hover."""
        if tau is None:
            return "–"
        if not self._dated(tau):
            return h("span", f"τ {tau:,}", title=f"time point {tau}")
        assert self.unit is not None
        return h("time", time=tau * self.unit, tau=tau, unit=self.unit)

    def atom(self, text: str) -> Node:
        """An atom as it is printed, its time point in local time."""
        found = _GROUND.search(text)
        if found is None or not self._dated(int(found[1])):
            return text
        return h("span", text[: found.start(1)], self.at(int(found[1])), text[found.end(1) :])

    def condition(self, text: str, times: Collection[str]) -> Node:
        """A comparison; its number is a time point where its variable is one of these."""
        found = _COMPARED.search(text)
        if found is None or found[1] not in times or not self._dated(int(found[2])):
            return text
        return h("span", text[: found.start(2)], self.at(int(found[2])))

    def left(self, deadline: int | None) -> Node:
        """How long until a deadline: what arrives in the time point of the deadline is in time."""
        if deadline is None:
            return h("span", "no deadline", class_="quiet", title="it waits for ever")
        end = (deadline + 1) * (self.unit or 1)
        if self.ticks and end <= _LAST:
            return h("span", class_="left", left=end, tau=deadline)
        points = deadline - (self.tau if self.tau is not None else deadline)
        return h("span", self.span(points), class_="left", title=f"deadline τ {deadline}")

    def span(self, points: int) -> str:
        """A number of time points as a duration."""
        if self.by_calendar and self.unit is not None:
            return duration(points * self.unit)
        return f"{points:,} time point{'' if points == 1 else 's'}"


def duration(ms: float) -> str:
    """Milliseconds in the largest two units."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 10_000 and ms % 1000:
        return f"{ms / 1000:.1f} s"
    seconds = round(ms / 1000)
    for size, name, small, small_name in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if seconds >= size:
            rest = seconds % size // small
            return f"{seconds // size} {name}" + (f" {rest} {small_name}" if rest else "")
    return f"{seconds} s"
