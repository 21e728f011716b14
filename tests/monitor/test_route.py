"""Routing in the JVM: the same δ and the same groups as in Python."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, Phase, given, settings
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from monitor.doubt import NEVER, Rules
from monitor.plan import Horizon, routed
from monitor.start import Loaded
from resolution.facts import read_event
from resolution.program import Program, load
from tests.random_programs import Case, cases


def by_spark(
    spark: SparkSession, program: Program, lines: list[str]
) -> list[tuple[int, set[tuple[int, str, int]]]]:
    """δ and groups of each fact."""
    own = spark.newSession()
    own.conf.set("spark.sql.caseSensitive", "true")
    rows = own.createDataFrame(list(enumerate(lines)), "number int, value string").withColumn(
        "stamp", F.lit(None).cast("long")
    )
    loaded = Loaded.of("routes", program)
    rules, horizon = Rules("arrival", None, None), Horizon(None, None)
    found, targets = routed([(rows, None)], program, loaded.routing, rules, horizon)
    found = found.select("number", "delay", "matches", targets.alias("targets")).orderBy("number")
    told = []
    for row in found.collect():
        groups = {(t.query, t.key, t.closes) for t in row.targets or () if t is not None}
        assert row.matches or not groups
        told.append((row.delay, groups))
    return told


def by_python(program: Program, lines: list[str]) -> list[tuple[int, set[tuple[int, str, int]]]]:
    routing = Loaded.of("routes", program).routing
    told = []
    for line in lines:
        fact = read_event(line, program)
        delay = program.delays.of(fact.atom)
        targets = routing.targets(fact.atom) if fact.arrival <= fact.time + delay else set()
        told.append((delay, {(t.query, t.key, NEVER if t.closes is None else t.closes)
                             for t in targets}))  # fmt: skip
    return told


@settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(case=cases(facts=30))
def test_random_programs(spark: SparkSession, case: Case) -> None:
    lines = [json.dumps(event) for event in case.events]
    if not lines:
        return
    sent, wanted = by_spark(spark, case.program, lines), by_python(case.program, lines)
    assert [delay for delay, _ in sent] == [delay for delay, _ in wanted]
    # The order of texts is left to the kernel; what it would drop may come to it.
    assert all(fewer <= more for (_, more), (_, fewer) in zip(sent, wanted, strict=True))
    shapes = Loaded.of("routes", case.program).routing.shapes
    if all(t.operator in ("=", "!=") for shape in shapes for ts in shape.tests for t in ts):
        assert sent == wanted


def test_tables_too_large_for_the_plan_are_joined(spark: SparkSession) -> None:
    near = "".join(f"Near(a{n}, b{n % 7})." for n in range(200))
    delays = "".join(f"delay Hot(a{n}, _) = {n % 5 + 2}." for n in range(200))
    program = load(
        f"""
        stream Hot(x, level) delay 1.
        {delays}
        delay Hot(_, high) = 9.
        delay Hot(a3, high) = 1.
        rigid Near(a, b).
        {near}
        q(X, Y, T) <- Hot(X, L, T), Near(X, Y), Hot(Y, L, T+3).
        r(X, T) <- Hot(X, high, T), Near(X, b1).
        query q(X, Y, T).
        query r(X, T).
        """
    )
    lines = [
        json.dumps({"fact": "Hot", "args": [name, level], "time": time})
        for name in ("a1", "a3", "a8", "a199", "b0", "b6", "c", 5)
        for level in ("high", "low")
        for time in (0, 15, 40)
    ]
    found = by_spark(spark, program, lines)
    assert found == by_python(program, lines)
    assert any(len(groups) > 20 for _, groups in found)


def test_numbers_in_comparisons(spark: SparkSession) -> None:
    program = load(
        """
        stream V(x, v) delay 1.
        q(X, T) <- V(X, A, T), A > 80, A <= 9007199254740993.
        query q(X, T).
        """
    )
    values = [80, 81, 80.00001, "81", "x", -5, 1e22, 9007199254740992, 9007199254740993, True]
    lines = [json.dumps({"fact": "V", "args": ["a", v], "time": 1}) for v in values]
    for (_, sent), (_, wanted) in zip(
        by_spark(spark, program, lines), by_python(program, lines), strict=True
    ):
        assert wanted <= sent  # a double may let one more through, and never one less
