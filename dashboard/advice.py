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
    late = sum(facts for delay, facts in one.seen if delay > one.longest_delay)
    longest = max(delay for delay, _ in one.seen)
    if late > _BEARABLE * total:
        enough = _covering(one, 1 - _BEARABLE)
        share = f"{100 * late / total:.2g} %"
        return Advice(
            f"δ is too tight: {share} of the facts came late and take no part in answers. "
            f"A δ of {enough:,} would have let in all but one in a thousand "
            f"({clock.span(enough)}); pending answers would wait that much longer.",
            True,
        )
    if total >= _ENOUGH and longest * 2 < one.longest_delay:
        enough = max(1, -(-longest * 5 // 4))
        return Advice(
            f"δ is wider than it has to be: no fact came later than {longest:,}. A δ of {enough:,} "
            f"leaves room, and decides what is pending {clock.span(one.longest_delay - enough)} "
            "sooner.",
            True,
        )
    if late:
        return Advice(f"δ fits: {late:,} of {total:,} facts came late.", False)
    if total < _ENOUGH:
        return Advice(f"No fact was late; {total:,} facts are too few to say more.", False)
    return Advice(f"δ fits: no fact was late, the slowest came after {longest:,}.", False)


def _covering(one: Delays, share: float) -> int:
    wanted = share * sum(facts for _, facts in one.seen)
    so_far = 0
    for delay, facts in one.seen:
        so_far += facts
        if so_far >= wanted:
            return delay
    return one.seen[-1][0]
