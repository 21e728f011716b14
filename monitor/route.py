"""Facts to groups in the JVM: `resolution.routing` and the delay bounds as Spark SQL.

Small tables of constants become CASE branches and IN lists. Large ones (rigid facts make thousands
of premise sets alike) become a broadcast join each, so that the plan does not grow with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from monitor.doubt import NEVER, TARGET
from monitor.parse import Streams
from resolution.delays import Delays, Pattern
from resolution.routing import SEPARATOR, Blocks, Routing, Shape, Test, Texts
from resolution.terms import Value, show

BRANCHES = 64
"""Entries of a table beyond which it is joined, not written into the plan."""

_EXACT = 15  # digits that a double holds


class Router:
    """Adds `delay` and `matches` to clean facts, then `targets` to those that match."""

    def __init__(
        self, spark: SparkSession, streams: Streams, routing: Routing, delays: Delays
    ) -> None:
        self._spark = spark
        self._streams = streams
        self._routing = routing
        self._delays = delays
        self._numbers = {name: number for number, name in enumerate(streams.names)}

    def judged(self, facts: DataFrame) -> DataFrame:
        """`delay`: the δ of each fact; `matches`: whether it goes to any group."""
        for number, name in enumerate(self._streams.names):
            facts = self._with_delay(facts, number, self._delays.bounds[name])
        delay = F.lit(None).cast("long")
        for number in range(len(self._streams.names)):
            delay = F.when(F.col("predicate") == number, F.col(f"delay{number}")).otherwise(delay)
        facts = facts.withColumn("delay", delay)
        facts = facts.drop(*(f"delay{n}" for n in range(len(self._streams.names))))
        for at, shape in enumerate(self._routing.shapes):
            if _joined(shape):
                facts = self._lookup(facts, shape.places, f"keys{at}", shape.table, _KEYS)
        matches = _any(self._fits(at, shape) for at, shape in enumerate(self._routing.shapes))
        return facts.withColumn("matches", F.coalesce(matches, F.lit(False)))

    def targets(self) -> Column:
        """The groups of a judged fact, as an array of TARGET with nulls in between."""
        single: list[Column] = []
        several: list[Column] = []
        for at, shape in enumerate(self._routing.shapes):
            fits = self._fits(at, shape)
            if _joined(shape):
                for closes, there in self._blocks(shape):
                    made = F.transform(f"keys{at}", _target_by(shape, closes))
                    several.append(F.when(fits & there, made).otherwise(_none()))
                continue
            for wanted, keys in shape.table.items() if None in shape.key else [((), ((),))]:
                here = fits & _equals(shape.places, wanted) if None in shape.key else fits
                for constants in keys:
                    key = _key(shape, F.array(*map(F.lit, constants)) if constants else None)
                    for closes, there in self._blocks(shape):
                        single.append(F.when(here & there, _target(shape, key, closes)))
        parts = ([F.array(*single)] if single else []) + several
        return F.concat(*parts) if parts else _none()

    def _blocks(self, shape: Shape) -> Iterable[tuple[Column, Column]]:
        """When a block closes, for each of the (at most two) blocks, and whether there is one."""
        blocks: Blocks | None = self._routing.queries[shape.query].blocks
        if blocks is None:
            return [(F.lit(NEVER), F.lit(True))]
        assert shape.low is not None
        assert shape.high is not None
        length = F.lit(blocks.length)
        low = F.greatest(F.col("time") + shape.low, F.lit(0))
        high = F.col("time") + shape.high
        first = F.call_function("div", low, length)
        last = F.call_function("div", high, length)
        found = [((first + 1) * length + blocks.reach, high >= 0)]
        if shape.high > shape.low:
            found.append(((last + 1) * length + blocks.reach, (high >= 0) & (last > first)))
        return found

    def _fits(self, at: int, shape: Shape) -> Column:
        fits = F.col("predicate") == self._numbers[shape.predicate]
        if _joined(shape):
            fits &= F.col(f"keys{at}").isNotNull()
        elif shape.places:
            fits &= _text(shape.places).isin([SEPARATOR.join(w) for w in shape.table])
        for a, b in shape.equal:
            fits &= F.col(f"a{a}") == F.col(f"a{b}")
        if shape.times is not None:
            fits &= F.col("time").isin(sorted(shape.times))
        if shape.tests:
            fits &= _any(reduce(lambda a, b: a & b, map(_test, sorted(ts, key=repr)))
                         for ts in shape.tests)  # fmt: skip
        return fits

    # --- tables of constants -------------------------------------------------------------------

    def _with_delay(
        self, facts: DataFrame, number: int, bounds: Mapping[Pattern, int]
    ) -> DataFrame:
        """δ by the most specific pattern; among equally specific ones the larger."""
        by_places: dict[tuple[int, ...], dict[Texts, int]] = {}
        for pattern, bound in bounds.items():
            places = tuple(p for p, value in enumerate(pattern) if value is not None)
            wanted = tuple(show(value) for value in pattern if value is not None)
            by_places.setdefault(places, {})[wanted] = bound
        found: dict[int, list[Column]] = {}
        for at, (places, table) in enumerate(by_places.items()):
            if not places:
                column = F.lit(table[()])
            elif len(table) <= BRANCHES:
                column = F.lit(None).cast("long")
                for wanted, bound in table.items():
                    column = F.when(_equals(places, wanted), bound).otherwise(column)
            else:
                name = f"delay{number}_{at}"
                facts = self._lookup(facts, places, name, table, T.LongType())
                column = F.col(name)
            found.setdefault(len(places), []).append(column)
        ranked = [
            F.greatest(*columns) if len(columns) > 1 else columns[0]
            for _, columns in sorted(found.items(), reverse=True)
        ]
        return facts.withColumn(f"delay{number}", F.coalesce(*ranked).cast("long"))

    def _lookup(
        self,
        facts: DataFrame,
        places: tuple[int, ...],
        name: str,
        table: Mapping[Texts, object],
        kind: T.DataType,
    ) -> DataFrame:
        rows = [(SEPARATOR.join(wanted), value) for wanted, value in table.items()]
        schema = T.StructType([T.StructField("wanted", T.StringType()), T.StructField(name, kind)])
        entries = self._spark.createDataFrame(rows, schema)
        return facts.join(F.broadcast(entries), _text(places) == F.col("wanted"), "left").drop(
            "wanted"
        )


_KEYS = T.ArrayType(T.ArrayType(T.StringType()))


def _joined(shape: Shape) -> bool:
    """Whether the keys of a shape come from a join: many constants that stand in keys."""
    return None in shape.key and len(shape.table) > BRANCHES


def _text(places: tuple[int, ...]) -> Column:
    columns = [F.col(f"a{p}") for p in places]
    return columns[0] if len(columns) == 1 else F.concat_ws(SEPARATOR, *columns)


def _equals(places: tuple[int, ...], wanted: Texts) -> Column:
    return reduce(
        lambda a, b: a & b,
        (F.col(f"a{p}") == w for p, w in zip(places, wanted, strict=True)),
        F.lit(True),
    )


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(lambda a, b: a | b, conditions, F.lit(False))


def _none() -> Column:
    return F.array().cast(f"array<{TARGET}>")


def _target(shape: Shape, key: Column, closes: Column) -> Column:
    return F.struct(
        F.lit(shape.query).alias("query"), key.alias("key"), closes.cast("long").alias("closes")
    )


def _target_by(shape: Shape, closes: Column) -> Callable[[Column], Column]:
    """Spark counts the parameters of what it maps: one, the constants of an entry."""
    return lambda constants: _target(shape, _key(shape, constants), closes)


def _key(shape: Shape, constants: Column | None) -> Column:
    parts: list[Column] = []
    taken = 0
    for place in shape.key:
        if place is None:
            assert constants is not None
            parts.append(constants.getItem(taken))
            taken += 1
        else:
            parts.append(F.col(f"a{place}"))
    if not parts:
        return F.lit("")
    return parts[0] if len(parts) == 1 else F.concat_ws(SEPARATOR, *parts)


def _test(test: Test) -> Column:
    """A comparison, true wherever it may hold: what a double cannot tell is left to the kernel."""
    left = F.col(f"a{test.place}")
    right = F.lit(show(test.value)) if test.value is not None else F.col(f"a{test.other}")
    if test.operator == "=":
        return left == right
    if test.operator == "!=":
        return left != right
    if not isinstance(test.value, int | float):
        return F.lit(True)
    return _ordered(left, test.operator, test.value)


def _ordered(text: Column, operator: str, value: Value) -> Column:
    number, bound = text.try_cast("double"), F.lit(float(value))
    at_least = operator.startswith(">")
    wide = number >= bound if at_least else number <= bound
    exact = operator in (">=", "<=") or len(show(value)) > _EXACT
    if exact:
        near = wide
    else:
        near = F.when(F.length(text) > _EXACT, wide).otherwise(
            number > bound if at_least else number < bound
        )
    return text.rlike("^[-0-9]") & near
