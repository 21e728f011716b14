"""Events to facts in the JVM: everything that is beyond doubt, and nothing else.

An event is *clean* when SQL alone can tell that it is a fact and how its values print: one flat
object without escapes, keys that stand once, whole numbers, short decimals, plain strings. What is
not clean is no mistake yet: it is asked of `resolution.facts`, in Python, which knows (see
`monitor.doubt`). So the two can only agree, and a reason is always given in the same words.

Clean facts get the columns `predicate` (its number in `Streams`, null for what is not clean), `a0`,
`a1`, … (the values as they print), `time` and `arrival`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from resolution.facts import LONGEST_LINE, RESERVED
from resolution.program import Field, Program

_NAME = r"^[a-z][A-Za-z0-9_]*\z"
_FLAT = r"^\{[^{}\\]*+\}[ \t\r\n]*\z"
"""One object, nothing after it, no escapes: what Jackson reads is then what Python reads."""
_WHOLE = r"^(?:0|-?[1-9][0-9]{0,199})\z"
_POINT = r"^(?:0|[1-9][0-9]{0,16})\z"
# Jackson gives a number with a point as Java prints the double. Where that has at most 15 digits,
# and the number is not so small that Python prints an exponent, it is what Python prints, less
# trailing zeros: no two texts so short read as the same double.
_DECIMAL = r"^-?(?!0\.0000)(?:0|[1-9][0-9]{0,8})\.[0-9]{1,6}\z"
_NUMBER = r"^-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\z"
_INSTANT = (
    r"^(?:19[7-9][0-9]|20[0-9]{2})-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]"
    r"(?:\.[0-9]{1,6})?(?:Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9])?\z"
)
_BARE = ("true", "false", "null")


@dataclass(frozen=True)
class Streams:
    """The stream predicates of a program by number: columns hold the number, not the name."""

    names: tuple[str, ...]
    fields: tuple[tuple[Field, ...], ...]

    @classmethod
    def of(cls, program: Program) -> Streams:
        names = tuple(sorted(program.streams))
        return cls(names, tuple(program.streams[name] for name in names))

    @property
    def width(self) -> int:
        """The most fields that a stream has."""
        return max(map(len, self.fields), default=0)


def parsed(events: DataFrame, program: Program, arrival_field: str | None) -> DataFrame:
    """Adds the columns of clean facts to `events` (value: string, stamp: arrival in ms or null).

    The arrival is `arrival_field` of the event, its time where that is missing, unless the log has
    stamped it.
    """
    streams = Streams.of(program)
    names = {f.name for fields in streams.fields for f in fields} | set(RESERVED)
    if arrival_field:
        names.add(arrival_field)
    schema = T.StructType([T.StructField(name, _TYPES.get(name, _TEXT)) for name in sorted(names)])
    options = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
    # A step for what the next one uses more than once: Catalyst evaluates a column once.
    rows = events.withColumn("j", F.from_json("value", schema, options))
    clean = _flat() & _keys_once(sorted(names), arrival_field)
    rows = rows.withColumn("predicate", F.when(clean, _number(streams)))
    for place in range(streams.width):
        rows = rows.withColumn(f"x{place}", _text(streams, place))
    for place in range(streams.width):
        text = F.col(f"x{place}")
        rows = rows.withColumn(f"a{place}", _typed(_of_field(text), streams, place))
    time = _j("time")
    rows = rows.withColumn("time", _point(time, _is_string(time), program.unit))
    own: Column = F.col("time")
    if arrival_field:
        told = _j(arrival_field)
        point = _point(told, _is_string(told), program.unit)
        own = F.when(told.isNotNull(), point).otherwise(own)
    rows = _with_arrival(rows, program.unit, own)
    rows = _clean(rows, streams, _right_number(streams))
    return rows.drop("j", *(f"x{place}" for place in range(streams.width)))


_TEXT = T.StringType()
_TYPES = {"args": T.ArrayType(T.StringType())}


def parsed_csv(
    events: DataFrame, program: Program, arrival_field: str | None, header: tuple[str, ...]
) -> DataFrame:
    """The same for lines of CSV with this header. A line with quotes in it is not clean."""
    streams = Streams.of(program)
    columns = {name: F.get(F.col("e"), F.lit(at)) for at, name in enumerate(header)}
    missing = F.lit(None).cast("string")
    rows = events.withColumn("v", F.rtrim("value", F.lit("\r\n")))
    rows = rows.withColumn("e", F.split("v", ",", -1))
    flat = (
        F.is_valid_utf8(F.col("v"))
        & (F.length("v") <= LONGEST_LINE)
        & ~F.col("v").rlike(r'["\\\x00-\x1f\x{feff}]')
        & (F.size("e") == len(header))
    )
    number = F.lit(None).cast("int")
    for at, name in enumerate(streams.names):
        number = F.when(columns["fact"] == name, at).otherwise(number)
    rows = rows.withColumn("predicate", F.when(flat, number))
    for place in range(streams.width):
        text = missing
        for at, fields in enumerate(streams.fields):
            if place < len(fields):
                cell = columns.get(fields[place].name, missing)
                kind = fields[place].type
                told = _string(cell) if kind == "string" else _of_cell(cell)
                text = F.when(F.col("predicate") == at, told).otherwise(text)
        rows = rows.withColumn(f"a{place}", _typed(text, streams, place))
    rows = rows.withColumn("time", _point(columns["time"], F.lit(False), program.unit))
    own: Column = F.col("time")
    if arrival_field in columns:
        told = columns[arrival_field]
        own = F.when(told != "", _point(told, F.lit(False), program.unit)).otherwise(own)
    rows = _with_arrival(rows, program.unit, own)
    return _clean(rows, streams, F.lit(True)).drop("v", "e")


def _with_arrival(rows: DataFrame, unit: int, own: Column) -> DataFrame:
    stamp = F.expr(f"stamp div {unit}")
    return rows.withColumn("arrival", F.when(F.col("stamp").isNotNull(), stamp).otherwise(own))


def _clean(rows: DataFrame, streams: Streams, well: Column) -> DataFrame:
    """Without `predicate` where something is missing."""
    clean = well & (F.col("arrival") >= F.col("time"))
    for number, fields in enumerate(streams.fields):
        whole = [F.col(f"a{place}").isNotNull() for place in range(len(fields))]
        if whole:
            clean &= (F.col("predicate") != number) | reduce(lambda a, b: a & b, whole)
    return rows.withColumn("predicate", F.when(clean, F.col("predicate")))


def _j(name: str) -> Column:
    return F.col("j").getField(name)


def _flat() -> Column:
    value = F.col("value")
    return F.is_valid_utf8(value) & (F.octet_length(value) <= LONGEST_LINE) & value.rlike(_FLAT)


def _keys_once(names: list[str], arrival_field: str | None) -> Column:
    """No key stands twice, and none that may be missing is null.

    Mostly told by counting `":`, which ends a key if no space stands in between: one for each value
    that was found.
    """
    value = F.col("value")
    found: Column = F.lit(0)
    for name in names:
        found = found + _j(name).isNotNull().cast("int")
    ends = F.octet_length(value) - F.octet_length(F.replace(value, F.lit('":'), F.lit(":")))
    keys = F.json_object_keys(value)
    well = F.size(keys) == F.size(F.array_distinct(keys))
    for name in ("args", *([arrival_field] if arrival_field else [])):
        well &= _j(name).isNotNull() | ~F.array_contains(keys, name)
    apart = reduce(lambda a, b: a | b, (value.contains(f"{space}:") for space in " \t\r\n"))
    return F.when((ends == found) & ~apart, True).otherwise(well)


def _number(streams: Streams) -> Column:
    number = F.lit(None).cast("int")
    for at, name in enumerate(streams.names):
        if name not in _BARE:  # a bare true is no name of a predicate
            number = F.when(_j("fact") == name, at).otherwise(number)
    return number


def _right_number(streams: Streams) -> Column:
    """As many values as the predicate has fields, where they come as a list."""
    number = F.lit(None).cast("int")
    for at, fields in enumerate(streams.fields):
        number = F.when(F.col("predicate") == at, len(fields)).otherwise(number)
    return _j("args").isNull() | (F.size(_j("args")) == number)


def _text(streams: Streams, place: int) -> Column:
    """The value at a place as `from_json` gives it: a string without quotes, else as it stood."""
    by_name = F.lit(None).cast("string")
    for number, fields in enumerate(streams.fields):
        if place < len(fields):
            by_name = F.when(F.col("predicate") == number, _j(fields[place].name)).otherwise(
                by_name
            )
    listed = F.get(_j("args"), F.lit(place))
    return F.when(_j("args").isNotNull(), listed).otherwise(by_name)


def _typed(text: Column, streams: Streams, place: int) -> Column:
    """The text, or null where it is not of the type that the field is declared to have."""
    typed = text
    for number, fields in enumerate(streams.fields):
        if place < len(fields) and (kind := fields[place].type) is not None:
            fits = text.rlike(
                {"string": "^[^-0-9]", "float": "^[-0-9]", "int": r"^[-0-9][0-9]*\z"}[kind]
            )
            typed = F.when((F.col("predicate") == number) & ~fits, None).otherwise(typed)
    return typed


def _of_field(text: Column) -> Column:
    """A value as it prints, null where it is doubtful what it was."""
    return (
        F.when(text.rlike(_NAME), text)
        .when(text.rlike(_NUMBER), F.when(~_is_string(text), _numeral(text)))
        # A list, or what Jackson makes of a number that is too large.
        .when(~text.startswith("[") & ~text.contains('"'), _string(text))
    )


def _of_cell(text: Column) -> Column:
    """A value as it stands in CSV: a number where it reads as one, else a string."""
    return F.when(text.rlike(_NUMBER), _numeral(text)).when(
        text.rlike(r"^(?![-0-9].*\s)."), _string(text)
    )


def _string(text: Column) -> Column:
    """A string as it prints, if it has no quote or escape in it."""
    return F.when(text.rlike(_NAME), text).otherwise(F.concat(F.lit('"'), text, F.lit('"')))


def _is_string(text: Column) -> Column:
    """Whether a text may have been a string: it stands somewhere in quotes."""
    return F.col("value").contains(F.concat(F.lit('"'), text, F.lit('"')))


def _numeral(text: Column) -> Column:
    stripped = F.rtrim(F.rtrim(text, F.lit("0")), F.lit("."))
    return F.when(text.rlike(_WHOLE), text).when(
        text.rlike(_DECIMAL), F.when(stripped == "-0", "0").otherwise(stripped)
    )


def _point(text: Column, string: Column, unit: int) -> Column:
    """A time point: a whole number that is not a string, or an instant."""
    micros = F.unix_micros(text.try_cast("timestamp"))
    return F.when(text.rlike(_POINT), F.when(~string, text.cast("long"))).when(
        text.rlike(_INSTANT) & (micros >= 0), F.call_function("div", micros, F.lit(unit * 1000))
    )
