"""When a failed alert is tried again."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits of 1 s, 3 s, 9 s … up to 4 h, each a fifth more or less: 16 attempts, a day and more.

    Attempts are counted, not hours, so that a deliverer that was off for a day gives nothing up.
    """

    first: float = 1.0
    factor: float = 3.0
    longest: float = 4 * 3600.0
    attempts: int = 16
    jitter: float = 0.2

    def wait(self, attempts: int) -> float | None:
        """Seconds to wait after that many failed attempts; None: it is given up."""
        if attempts >= self.attempts:
            return None
        wait = min(self.first * self.factor ** min(attempts - 1, 64), self.longest)
        return wait * random.uniform(1 - self.jitter, 1 + self.jitter)


def retry_after(header: str | None, now: datetime) -> float | None:
    """Seconds that `Retry-After` asks for (a number or a date), a day at most."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), DAY)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return min(max((at - now).total_seconds(), 0.0), DAY)
