"""The tasks that benchmarks run: a program, as many facts as wanted, and the same question in SQL.

The SQL computes the confirmed answers only, from facts in order: what a person would do instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from resolution.kernel import FACTS

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Task:
    """A program over facts that `facts(n, delay)` makes, about n of them, all within δ."""

    name: str
    program: str
    make: Callable[[int, np.random.Generator], tuple[list[str], list[Ints], list[list[str]], Ints]]
    """Predicates, then by fact: which one, codes of its argument's text, and the time."""
    delay: int
    sql: str

    def facts(self, size: int, seed: int = 1) -> pa.Table:
        chance = np.random.default_rng(seed)
        predicates, codes, texts, time = self.make(size, chance)
        which, *args = codes
        columns = [pa.array(t).take(pa.array(c)) for t, c in zip(texts, args, strict=True)]
        flat = pa.concat_arrays(columns).take(
            pa.array(np.arange(len(time) * len(args)).reshape(len(args), len(time)).T.ravel())
        )
        offsets = pa.array(np.arange(len(time) + 1, dtype=np.int32) * len(args))
        arrival = time + chance.integers(0, self.delay + 1, len(time))
        order = np.argsort(arrival, kind="stable")
        table = pa.table(
            {
                "group": pa.array(np.zeros(len(time), np.int64)),
                "key": pa.nulls(len(time), pa.string()),
                "first": pa.nulls(len(time), pa.int64()),
                "past": pa.nulls(len(time), pa.int64()),
                "predicate": pa.array(predicates).take(pa.array(which)),
                "args": pa.ListArray.from_arrays(offsets, flat),
                "time": pa.array(time),
                "arrival": pa.array(arrival),
                "fresh": pa.array(np.ones(len(time), np.bool_)),
            },
            schema=FACTS,
        )
        return table.take(pa.array(order))


def _short_stops(size: int, chance: np.random.Generator):  # type: ignore[no-untyped-def]
    """Vehicles that are in position or not at each of 200 points, in runs as in the S1 data."""
    vehicles = max(1, size // 200)
    change = chance.random((vehicles, 200)) < 0.45
    inside = np.cumsum(change, axis=1) % 2
    which = np.where(inside, 0, chance.integers(1, 3, (vehicles, 200))).ravel()
    vehicle = np.repeat(np.arange(vehicles), 200)
    time = np.tile(np.arange(200), vehicles)
    return ["Pos", "NotPos", "NotOnMap"], [which, vehicle], [_names("veh", vehicles)], time


def _readings(size: int, chance: np.random.Generator):  # type: ignore[no-untyped-def]
    """Turbines that report a level at each of 500 points, high in a third of them."""
    turbines = max(1, size // 500)
    device = np.repeat(np.arange(turbines), 500)
    level = (chance.random(len(device)) < 0.35).astype(np.int64)
    time = np.tile(np.arange(500), turbines)
    none = np.zeros(len(time), np.int64)
    return ["Temp"], [none, device, level], [_names("wt", turbines), ["normal", "high"]], time


def _logins(size: int, chance: np.random.Generator):  # type: ignore[no-untyped-def]
    """Users who log in 40 times in ten hours, in bursts, three of four times in vain."""
    users = max(1, size // 40)
    user = np.repeat(np.arange(users), 40)
    burst = np.repeat(chance.integers(0, 32_400, (users, 8)), 5, axis=1)
    time = np.sort(burst + chance.integers(0, 300, (users, 40)), axis=1).ravel()
    result = (chance.random(len(user)) < 0.25).astype(np.int64)
    none = np.zeros(len(time), np.int64)
    return ["Login"], [none, user, result], [_names("u", users), ["fail", "success"]], time


def _pairs(size: int, chance: np.random.Generator):  # type: ignore[no-untyped-def]
    """Example 6: at each point two p and, every other time, one r."""
    points = max(1, size * 2 // 5)
    time = np.concatenate([np.repeat(np.arange(points), 2), np.arange(0, points, 2)])
    which = np.concatenate(
        [np.zeros(2 * points, np.int64), np.ones(len(time) - 2 * points, np.int64)]
    )
    value = chance.integers(0, 1000, len(time))
    return ["p", "r"], [which, value], [_names("x", 1000)], time


def _defects(size: int, chance: np.random.Generator):  # type: ignore[no-untyped-def]
    """Example 8: turbines that overheat now and then, a few of which once say nothing."""
    turbines = max(1, size // 20)
    device = np.repeat(np.arange(turbines), 20)
    level = (chance.random(len(device)) < 0.01).astype(np.int64)
    time = np.tile(np.arange(20) * 50, turbines) + chance.integers(0, 50, len(device))
    none = np.zeros(len(time), np.int64)
    return ["Temp"], [none, device, level], [_names("wt", turbines), ["high", '"n/a"']], time


def _names(stem: str, count: int) -> list[str]:
    return [f"{stem}{number}" for number in range(count)]


_STOPS = "\n".join(
    f"Stop(V, T) <- Out(V, T), {', '.join(f'Pos(V, T-{i})' for i in range(1, k + 1))}, "
    f"Out(V, T-{k + 1})."
    for k in (1, 2, 3, 4)
)


def _stop_sql(k: int) -> str:
    chain = " ".join(
        f"join pos p{i} on p{i}.a0 = o.a0 and p{i}.time = o.time - {i}" for i in range(1, k + 1)
    )
    return (
        f"select o.a0, o.time from out_ o {chain} "
        f"join out_ e on e.a0 = o.a0 and e.time = o.time - {k + 1}"
    )


_STOP_SQL = " union all ".join(map(_stop_sql, (1, 2, 3, 4)))

TASKS = (
    Task(
        "shortstop",
        "stream Pos(v) delay 3. stream NotPos(v) delay 3. stream NotOnMap(v) delay 3.\n"
        "Out(V, T) <- NotPos(V, T). Out(V, T) <- NotOnMap(V, T).\n"
        f"{_STOPS}\nquery Stop(V, T).",
        _short_stops,
        3,
        "with out_ as materialized (select distinct a0, time from facts where predicate <> 'Pos'),"
        " pos as materialized (select distinct a0, time from facts where predicate = 'Pos') "
        f"select count(*) from (select distinct * from ({_STOP_SQL}))",
    ),
    Task(
        "turbines",
        "stream Temp(device, level) delay 4.\nFlag(X, T) <- Temp(X, high, T).\n"
        "Cool(X, T+1) <- Flag(X, T), Flag(X, T+1).\nShdn(X, T+1) <- Cool(X, T), Flag(X, T+1).\n"
        "Malf(X, T-2) <- Shdn(X, T).\nquery Malf(X, T).",
        _readings,
        4,
        "with f as materialized (select distinct a0, time from facts where a1 = 'high') "
        "select count(*) from (select distinct f.a0, f.time from f "
        "join f g on g.a0 = f.a0 and g.time = f.time + 1 "
        "join f h on h.a0 = f.a0 and h.time = f.time + 2)",
    ),
    *(
        Task(
            f"login window {window}",
            "stream Login(user, result) delay 5.\nBrute(U, T2) <- Login(U, fail, T1), "
            f"Login(U, success, T2), T1 < T2, T2 <= T1+{window}.\nquery Brute(U, T).",
            _logins,
            5,
            "select count(*) from (select distinct s.a0, s.time from facts s join facts f "
            "on f.a0 = s.a0 and f.time < s.time "
            f"and s.time <= f.time + {window} where s.a1 = 'success' and f.a1 = 'fail')",
        )
        for window in (60, 3600)
    ),
    Task(
        "example 6",
        "stream p(x) delay 2. stream r(x) delay 1.\nq(X, T) <- p(X, T), r(Y, T).\nquery q(X, T).",
        _pairs,
        1,
        "select count(*) from (select distinct p.a0, p.time from facts p join facts r "
        "on r.time = p.time where p.predicate = 'p' and r.predicate = 'r')",
    ),
    Task(
        "example 8",
        "stream Temp(device, level) delay 4.\n"
        'Defective(X, 0) <- Temp(X, high, T1), Temp(X, "n/a", T2).\nquery Defective(X, T).',
        _defects,
        4,
        "select count(*) from (select distinct a.a0 from facts a join facts b on a.a0 = b.a0 "
        "where a.a1 = 'high' and b.a1 = '\"n/a\"')",
    ),
)
