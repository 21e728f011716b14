"""Whether a delay bound fits the delays really seen."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.queries import Delays
from dashboard.times import Clock

__all__ = ["Advice", "advice"]

_ENOUGH = 1000
"""Facts below which a bound is not called too wide: the slow ones may be still to come."""

_BEARABLE = 0.001
"""Share of late facts above which a bound is too tight."""


@dataclass(frozen=True, slots=True)
class Advice:
    text: str
    change: bool


def advice(one: Delays, clock: Clock) -> Advice:
    """What to say about the δ of a stream: too tight, too wide, or fine."""
    total = sum(facts for _, facts in one.seen)
    late = sum(facts for _, facts in one.beyond)
    slowest = max(delay for delay, _ in one.seen)
    if late > _BEARABLE * total:
        more = _more(one, total)
        return Advice(
            f"δ is too tight: {late:,} of {total:,} facts came late and take no part in answers. "
            f"With {more:,} more, at most one in a thousand would; pending answers would wait "
            f"{clock.span(more)} longer.",
            True,
        )
    if late:
        return Advice(f"δ fits: {late:,} of {total:,} facts came late.", False)
    if total < _ENOUGH:
        return Advice(f"No fact was late; {total:,} facts are too few to say more.", False)
    if slowest * 2 < one.delay:
        enough = max(1, -(-slowest * 5 // 4))
        return Advice(
            f"δ is wider than it has to be: no fact came later than {slowest:,}. A δ of {enough:,} "
            f"leaves room, and decides what is pending {clock.span(one.delay - enough)} sooner.",
            True,
        )
    return Advice(f"δ fits: no fact was late, the slowest came after {slowest:,}.", False)


def _more(one: Delays, total: int) -> int:
    """What a δ must grow by for at most the bearable share to be late."""
    left = sum(facts for _, facts in one.beyond)
    for beyond, facts in one.beyond:
        left -= facts
        if left <= _BEARABLE * total:
            return beyond
    raise AssertionError("nothing is beyond the last one")
