"""A simulated wind farm: a reading a second from each turbine, held back on its way.

`whilst simulate` makes facts that fit any program; a farm has weather, and heat that lasts.
Most readings arrive within a second, some out of order, a few after their delay bound, and a few
never. The same seed gives the same weather and the same lines.
"""

from __future__ import annotations

import heapq
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

TURBINES = 12
SLOW = "wt7"
DELAY = 15
SLOW_DELAY = 45

RULES = f"""\
% When is a wind turbine about to fail? Three readings `high` in a row.
unit 1s.

% A reading is in time if it arrives at most {DELAY} s after it was taken; {SLOW} has a slow line.
stream Temp(device: string, level: string) delay {DELAY}s.
delay Temp({SLOW}, _) = {SLOW_DELAY}s.

Flag(X, T) <- Temp(X, high, T).            % too hot
Cool(X, T+1) <- Flag(X, T), Flag(X, T+1).  % twice in a row: cool it
Shdn(X, T+1) <- Cool(X, T), Flag(X, T+1).  % still hot: shut it down
Malf(X, T-2) <- Shdn(X, T).                % it began to fail two seconds before

query Malf(X, T).
"""

_HEATS_UP, _STAYS_HOT = 0.08, 0.65
_PROMPT, _HELD_BACK, _LATE = 0.70, 0.27, 0.02  # the rest is lost


@dataclass(slots=True)
class Farm:
    """The readings from a second on, given out as they arrive."""

    second: int
    seed: int = 0
    _hot: dict[str, bool] = field(init=False)
    _random: random.Random = field(init=False)
    _travelling: list[tuple[int, int, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._hot = {f"wt{number}": False for number in range(1, TURBINES + 1)}

    def arriving(self, until: int) -> Iterator[str]:
        """The events that arrive after the last call, up to a second; each once, as JSON."""
        while self.second <= until:
            self._measure(self.second)
            self.second += 1
        while self._travelling and self._travelling[0][0] <= until:
            _, time, device, level = heapq.heappop(self._travelling)
            reading = {"device": device, "level": level, "time": time, "arrival": until}
            yield json.dumps({"fact": "Temp", **reading})

    def _measure(self, second: int) -> None:
        for device, hot in self._hot.items():
            now_hot = self._random.random() < (_STAYS_HOT if hot else _HEATS_UP)
            self._hot[device] = now_hot
            travels = self._travel(SLOW_DELAY if device == SLOW else DELAY)
            if travels is not None:
                level = "high" if now_hot else "low"
                heapq.heappush(self._travelling, (second + travels, second, device, level))

    def _travel(self, bound: int) -> int | None:
        kind = self._random.random()
        if kind < _PROMPT:
            return self._random.randint(0, 1)
        if kind < _PROMPT + _HELD_BACK:
            return self._random.randint(2, bound - 1)
        if kind < _PROMPT + _HELD_BACK + _LATE:
            return bound + self._random.randint(2, 8)
        return None
