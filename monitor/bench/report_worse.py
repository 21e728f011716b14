"""Runs of the benchmarks as they are kept, and what got worse from one to the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Figure = dict[str, Any]

_MORE_IS_BETTER = ("/s", "vs ", "found")
_LESS_IS_BETTER = ("seconds", "MB", " ms", "bytes", "latency", "missed", "wrong", "lost")
_NOTHING = ("least", "most", "floor", "copy rows/s", "answers", "events", "start s", "cannot")
_TOLERANCE = 0.2
"""What two runs of the same code differ by on a machine that does nothing else, and some more."""


@dataclass(frozen=True)
class Kept:
    began: str
    minutes: float
    scale: float
    commit: str
    load: float | None
    """Of the machine before the run began."""
    machine: dict[str, Any]
    figures: list[Figure]
    note: str = ""
    """What a reader has to know of this run, written into its file by hand."""

    @classmethod
    def of(cls, run: dict[str, Any]) -> Kept:
        return cls(**run)

    def like(self, other: Kept) -> bool:
        """Whether the two can be compared: the same size on the same machine, otherwise idle."""
        same = ("processor", "cores")
        if self.busy or other.busy:
            return False
        return self.scale == other.scale and all(
            self.machine.get(key) == other.machine.get(key) for key in same
        )

    @property
    def busy(self) -> bool:
        """Whether the machine had other work when the run began."""
        return self.load is not None and self.load > 1

    def where(self, **wanted: object) -> list[Figure]:
        return [f for f in self.figures if all(f.get(k) == v for k, v in wanted.items())]

    def value(self, **wanted: object) -> Any:
        """The value of the one figure that is meant, None if it was not measured."""
        found = self.where(**wanted)
        return found[0]["value"] if found else None


@dataclass(frozen=True)
class Worse:
    figure: Figure
    before: float

    @property
    def text(self) -> str:
        f = self.figure
        named = ", ".join(str(f[k]) for k in ("bench", "task", "order", "peer") if f.get(k))
        return f"{named}: {f['figure']} {_number(self.before)} → {_number(f['value'])}"


def worse(before: Kept, now: Kept) -> list[Worse]:
    """Figures of ours that changed for the worse by more than chance; peers are not our concern."""
    old = {_name(f): f["value"] for f in before.figures}
    return [
        Worse(figure, old[_name(figure)])
        for figure in _ours(now)
        if _name(figure) in old and _is_worse(figure["figure"], old[_name(figure)], figure["value"])
    ]


def _ours(run: Kept) -> Iterator[Figure]:
    for figure in run.figures:
        if figure.get("peer") in (None, "pipeline", "kernel"):
            yield figure


def _name(figure: Figure) -> tuple[object, ...]:
    return tuple(figure.get(key) for key in ("bench", "task", "order", "peer", "figure"))


def _is_worse(name: str, before: Any, now: Any) -> bool:
    if not isinstance(before, int | float) or not isinstance(now, int | float):
        return False
    if any(name.endswith(part) or name == part for part in _NOTHING):
        return False
    if any(part in name for part in _LESS_IS_BETTER):
        return now > before * (1 + _TOLERANCE) and now - before > 0.01
    if any(part in name for part in _MORE_IS_BETTER):
        return now < before * (1 - _TOLERANCE)
    return False


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:g}"
