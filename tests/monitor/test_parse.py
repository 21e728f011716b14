"""Parsing in the JVM: whatever it takes for a fact, `resolution.facts` reads as the same fact."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from monitor.doubt import fact_with_arrival
from monitor.parse import Streams, parsed
from resolution.facts import RejectedEvent
from resolution.program import Program, load
from resolution.terms import show

PROGRAM = load(
    """
    unit 250ms.
    stream Temp(device, level) delay 1.
    stream Login(user: string, ms: int, score: float, note) delay 1.
    stream Alarm() delay 0.
    stream true(device) delay 0.
    q(X, T) <- Temp(X, high, T), Alarm(T), Login(X, _, _, _, T), true(X, T).
    query q(X, T).
    """.replace("stream true(device) delay 0.", "").replace(", true(X, T)", "")
)
STREAMS = Streams.of(PROGRAM)


def clean(
    spark: SparkSession, lines: list[bytes], program: Program = PROGRAM, stamp: int | None = None
) -> list[tuple[Any, ...] | None]:
    """What the JVM says about each line: predicate, values, time and arrival, or nothing."""
    own = spark.newSession()
    own.conf.set("spark.sql.caseSensitive", "true")
    rows: DataFrame = own.createDataFrame(
        [(number, bytearray(line), stamp) for number, line in enumerate(lines)],
        "number int, value binary, stamp long",
    ).withColumn("value", F.col("value").cast("string"))
    field = "arrival" if stamp is None else None
    found = parsed(rows, program, field).drop("value", "stamp").orderBy("number").collect()
    streams = Streams.of(program)
    return [_fact(row.asDict(), streams) for row in found]


def _fact(row: dict[str, Any], streams: Streams) -> tuple[Any, ...] | None:
    if row["predicate"] is None:
        return None
    fields = streams.fields[row["predicate"]]
    values = tuple(row[f"a{place}"] for place in range(len(fields)))
    return streams.names[row["predicate"]], values, row["time"], row["arrival"]


def read(
    line: bytes, program: Program = PROGRAM, stamp: int | None = None
) -> tuple[Any, ...] | None:
    """The same by `resolution.facts`."""
    arrival = None if stamp is None else stamp // program.unit
    try:
        text = line.decode()
        fact = fact_with_arrival(text, program, "arrival" if stamp is None else None, arrival)
    except (RejectedEvent, UnicodeDecodeError):
        return None
    values = tuple(map(show, fact.atom.args))
    return fact.atom.predicate, values, fact.time, fact.arrival


# --- what must not need Python: the events of an ordinary log -----------------------------------

ORDINARY = [
    '{"fact": "Temp", "args": ["wt2", "high"], "time": 0, "arrival": 0}',
    '{"fact":"Temp","args":["wt2","high"],"time":0,"arrival":7}',
    '{"fact": "Temp", "args": ["WT 2", 3.50], "time": 5}',
    '{"fact": "Temp", "args": [-1.0, true], "time": 5, "arrival": 5}\r',
    '{"fact": "Temp", "args": [12345678901234567890123, "n/a"], "time": 5}',
    '{"time": 5, "level": "high", "device": "wt2", "fact": "Temp"}',
    '{"fact": "Temp", "device": "Ünit: 7", "level": -0.25, "time": "2026-01-01T00:00:00Z"}',
    '{"fact": "Temp", "device": "wt2", "level": "high", "time": "2026-01-01T00:00:00.750+01:00", '
    '"arrival": "2026-01-01T00:00:00.250Z"}',
    '{"fact": "Temp", "device": "wt2", "level": "high", "time": 3, "sequence": 17}',
    '{"fact": "Login", "user": "ann", "ms": 12, "score": 0.5, "note": false, "time": 3}',
    '{"fact": "Login", "args": ["", 12, 100, "a b"], "time": 3}',
    '{"fact": "Alarm", "args": [], "time": 3}',
    '{"fact": "Alarm", "time": 3}',
]


def test_ordinary_events_are_parsed_in_the_jvm(spark: SparkSession) -> None:
    lines = [line.encode() for line in ORDINARY]
    found = clean(spark, lines)
    assert found == [read(line) for line in lines]
    assert None not in found


def test_a_stamped_log_goes_by_its_stamps(spark: SparkSession) -> None:
    lines = [
        b'{"fact": "Temp", "args": ["wt2", "high"], "time": 3}',
        b'{"fact": "Temp", "args": ["wt2", "high"], "time": 3, "arrival": 99}',
        b'{"fact": "Temp", "args": ["wt2", "high"], "time": 3, "arrival": "never"}',
        b'{"fact": "Temp", "args": ["wt2", "high"], "time": 5}',
    ]
    assert clean(spark, lines, stamp=1249) == [
        ("Temp", ("wt2", "high"), 3, 4),
        ("Temp", ("wt2", "high"), 3, 4),
        ("Temp", ("wt2", "high"), 3, 4),
        None,
    ]
    assert [read(line, stamp=1249) for line in lines] == clean(spark, lines, stamp=1249)


# --- nasty ones ---------------------------------------------------------------------------------

NASTY = [
    "", " ", "{", "}", "{}", "[]", "null", "7", '"Temp"', "\ufeff{}", "{}{}",
    '{"fact": "Temp", "args": ["a", "b"], "time": 1} x',
    '{"fact": "Temp", "args": ["a", "b"], "time": 1}{"fact": "Temp"}',
    '{"fact": "Temp", "args": ["a", "b"], "time": 1',
    '{"fact": "Temp", "args": ["a", "b"], "time": 1,}',
    '{"fact": "Temp", "args": ["a", "b",], "time": 1}',
    "{'fact': 'Temp', 'args': ['a', 'b'], 'time': 1}",
    '{fact: "Temp", "args": ["a", "b"], "time": 1}',
    '{"fact": "Temp", "args": ["a", NaN], "time": 1}',
    '{"fact": "Temp", "device": "a", "level": Infinity, "time": 1}',
    '{"fact": "Temp", "args": ["a", "NaN"], "time": 1}',
    '{"fact": "Temp", "args": "[1,2]", "time": 1}',
    '{"fact": "Temp", "args": "[]", "time": 1}',
    '{"fact": "Temp", "args": ["[1", "2]"], "time": 1}',
    '{"fact": "Temp", "args": ["a,b"], "time": 1}',
    '{"fact": "Temp", "args": ["a\\", \\"b", "c"], "time": 1}',
    '{"fact": "Temp", "args": ["\\u0061", "b"], "time": 1}',
    '{"fact": "Temp", "args": ["\\ud800", "b"], "time": 1}',
    '{"fact": "Temp", "args": ["a\tb", "b"], "time": 1}',
    '{"fact": "Temp", "device": "a\tb", "level": "b", "time": 1}',
    '{"fact": "Temp", "args": [["a"], "b"], "time": 1}',
    '{"fact": "Temp", "args": [{"a": 1}, "b"], "time": 1}',
    '{"fact": "Temp", "args": [null, "b"], "time": 1}',
    '{"fact": "Temp", "args": ["a"], "time": 1}',
    '{"fact": "Temp", "args": ["a", "b", "c"], "time": 1}',
    '{"fact": "Temp", "args": [], "time": 1}',
    '{"fact": "Temp", "args": null, "device": "a", "level": "b", "time": 1}',
    '{"fact": "Alarm", "args": [""], "time": 1}',
    '{"fact": "Alarm", "args": [ ], "time": 1}',
    '{"fact": "Alarm", "args": "", "time": 1}',
    '{"fact": "temp", "args": ["a", "b"], "time": 1}',
    '{"fact": null, "args": ["a", "b"], "time": 1}',
    '{"fact": "q", "args": ["a"], "time": 1}',
    '{"fact": "Temp", "fact": "Temp", "args": ["a", "b"], "time": 1}',
    '{"fact": "Temp", "args": ["a", "b"], "time": 1, "time": 1}',
    '{"fact": "Temp", "args": ["a", "b"], "time": 1, "x": 1, "x": 2}',
    '{"fact": "Temp", "args": ["a", "b"], "time": 1, "x": {"y": 1, "y": 2}}',
    '{"fact": "Temp", "args": ["a", "b"], "time": 1, "x": {"y": 1}}',
    '{"fact": "Temp", "args": ["a", "b"], "time": "2026-01-01T00:00:00Z", "time": 1}',
    '{"fact": "Temp", "args": ["a", "b"], "Time": 3, "time": 1}',
    '{"fact": "Temp", "args": ["a", "b"], "time": 1.0}',
    '{"fact": "Temp", "args": ["a", "b"], "time": 1e2}',
    '{"fact": "Temp", "args": ["a", "b"], "time": 1.5}',
    '{"fact": "Temp", "args": ["a", "b"], "time": -1}',
    '{"fact": "Temp", "args": ["a", "b"], "time": -0}',
    '{"fact": "Temp", "args": ["a", "b"], "time": 01}',
    '{"fact": "Temp", "args": ["a", "b"], "time": "1"}',
    '{"fact": "Temp", "args": ["a", "b"], "time": true}',
    '{"fact": "Temp", "args": ["a", "b"], "time": null}',
    '{"fact": "Temp", "args": ["a", "b"], "time": [1]}',
    '{"fact": "Temp", "args": ["a", "b"], "time": 2305843009213693952}',
    '{"fact": "Temp", "args": ["a", "b"], "time": 2305843009213693953}',
    '{"fact": "Temp", "args": ["a", "b"], "time": 99999999999999999999}',
    '{"fact": "Temp", "args": ["a", "b"], "time": "2026-02-30T00:00:00Z"}',
    '{"fact": "Temp", "args": ["a", "b"], "time": "2026-01-01T24:00:00Z"}',
    '{"fact": "Temp", "args": ["a", "b"], "time": "2026-01-01T00:00:60Z"}',
    '{"fact": "Temp", "args": ["a", "b"], "time": "1970-01-01T00:00:00+01:00"}',
    '{"fact": "Temp", "args": ["a", "b"], "time": "1969-12-31T23:59:59Z"}',
    '{"fact": "Temp", "args": ["a", "b"], "time": "2026-01-01"}',
    '{"fact": "Temp", "args": ["a", "b"], "time": "2026-01-01 00:00:00"}',
    '{"fact": "Temp", "args": ["a", "b"], "time": "2026-01-01T00:00"}',
    '{"fact": "Temp", "args": ["a", "b"], "time": "20260101T000000Z"}',
    '{"fact": "Temp", "args": ["a", "b"], "time": "2026-W01-1"}',
    '{"fact": "Temp", "args": ["a", "b"], "time": "2026-01-01T00:00:00.1234567Z"}',
    '{"fact": "Temp", "args": ["a", "b"], "time": "2026-01-01T00:00:00,5Z"}',
    '{"fact": "Temp", "args": ["a", "b"], "time": 5, "arrival": 4}',
    '{"fact": "Temp", "args": ["a", "b"], "time": 5, "arrival": null}',
    '{"fact": "Temp", "args": ["a", "b"], "time": 5, "arrival": "5"}',
    '{"fact": "Temp", "args": ["a", "b"], "arrival": 5}',
    '{"fact": "Temp", "device": "a", "time": 5}',
    '{"fact": "Temp", "device": "5", "level": 5, "time": 5}',
    '{"fact": "Temp", "device": "true", "level": true, "time": 5}',
    '{"fact": "Temp", "device": "null", "level": "False", "time": 5}',
    '{"fact": "Temp", "device": "[1]", "level": "x", "time": 5}',
    '{"fact": "Temp", "device": [1], "level": "x", "time": 5}',
    '{"fact": "Temp", "device": {}, "level": "x", "time": 5}',
    '{"fact": "Temp", "device": "{", "level": "}", "time": 5}',
    '{"fact": "Temp", "device": "1e5", "level": 1e5, "time": 5}',
    '{"fact": "Login", "args": ["ann", 1.0, "2", 3], "time": 1}',
    '{"fact": "Login", "args": [7, 1, 2, 3], "time": 1}',
    '{"fact": "Login", "args": ["7", 1.5, 2, 3], "time": 1}',
    '{"fact": "Login", "args": ["7", true, 2, 3], "time": 1}',
    '{"fact": "Login", "args": [true, 1, 2, 3], "time": 1}',
    '{"fact": "Login", "args": ["-", 1, 2, 3], "time": 1}',
    '{"fact": "Temp", "args": ["🌀", "b"], "time": 1}',
    '{"fact": "Temp", "device": "🌀", "level": "\u2028", "time": 1}',
    '{"fact": "Login", "user": "-5", "ms": 1, "score": 2, "note": 3, "time": 1}',
]  # fmt: skip
NUMBERS = [
    "0", "-0", "0.0", "-0.0", "1.0", "1e3", "1E3", "1e-3", "1e400", "-1e400", "3.50", "0.1",
    "0.0001", "0.00001", "0.00010", "100000000000000000000", "123456789.123456",
    "999999999.999999", "1234567890.5", "0.30000000000000004", "5e-324", "1e22", "1e23",
    "9007199254740993", "9007199254740993.0", "1.7976931348623157e308", "00", "01", "+1", ".5",
    "5.", "1_000", "0x10", "-", "--1", "1e", "١",
]  # fmt: skip
BYTES = [
    b'{"time": 3, "args"\t: -7879, "fact": "Alarm"}',
    b'{"fact": "Alarm", "time": 3, "time" : 4}',
    b'{"fact": "Alarm", "time": 3, "time"  \r: 4}',
    b'{"fact": "Temp", "args": ["\xff", "b"], "time": 1}',
    b'{"fact": "Temp", "args": ["\xc0\x80", "b"], "time": 1}',
    b'{"fact": "Temp", "args": ["\xed\xa0\x80", "b"], "time": 1}',
    b'{"fact": "Temp", "args": ["a\x00", "b"], "time": 1}',
    b'{"fact": "Temp", "args": ["a", "b"], "time": 1}\x00',
    b'{"fact": "Temp", "args": ["' + b"x" * 1_000_000 + b'", "b"], "time": 1}',
]


def test_nothing_nasty_passes_for_another_fact(spark: SparkSession) -> None:
    numbers = [
        text
        for number in NUMBERS
        for text in (
            f'{{"fact": "Temp", "args": ["a", {number}], "time": 1}}',
            f'{{"fact": "Temp", "device": "a", "level": {number}, "time": 1}}',
            f'{{"fact": "Login", "args": ["a", {number}, {number}, "{number}"], "time": 1}}',
            f'{{"fact": "Temp", "device": "a", "level": 1, "time": {number}}}',
        )
    ]
    lines = [text.encode("utf-8", "surrogatepass") for text in NASTY + numbers] + BYTES
    for line, found in zip(lines, clean(spark, lines), strict=True):
        assert found in (None, read(line)), line[:300]


SCALARS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["high", "wt2", "A b", "n/a", "5", "-1.5", "true", "[", "a:b", "{", ",", ""]),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.booleans(),
    st.none(),
)
PLAIN = st.sampled_from(["high", "wt2", "A b", "n/a", 5, -1.5, 0.25, 12, True])
TIMES = st.one_of(
    st.integers(-2, 100),
    st.datetimes().map(lambda at: at.isoformat() + "Z"),
    st.datetimes().map(lambda at: at.isoformat(timespec="seconds")),
    SCALARS,
)


@st.composite
def event(draw: Any) -> bytes:
    """An event that is a fact, or differs from one in a few ways."""
    values = draw(st.sampled_from([PLAIN, PLAIN, SCALARS]))
    at = draw(st.integers(0, 50))
    found: dict[str, Any] = {"fact": draw(st.sampled_from(["Temp", "Login", "Alarm"]))}
    fields = PROGRAM.streams[found["fact"]]
    if draw(st.booleans()):
        found["args"] = [draw(values) for _ in fields]
    else:
        found |= {f.name: draw(values) for f in fields}
    found["time"] = at
    if draw(st.booleans()):
        found["arrival"] = at + draw(st.integers(0, 5))
    for name in draw(st.lists(st.sampled_from([*found, "extra", "args", "arrival"]), max_size=1)):
        found[name] = draw(TIMES if name in ("time", "arrival") else SCALARS)
    for name in draw(st.lists(st.sampled_from(sorted(found)), max_size=1)):
        if draw(st.integers(0, 5)) == 0:
            del found[name]
    items = draw(st.permutations(list(found.items())))
    text = json.dumps(dict(items), ensure_ascii=draw(st.booleans()))
    if draw(st.integers(0, 4)) == 0:
        where = draw(st.integers(0, len(text)))
        extra = draw(st.sampled_from(['"', "\\", "{", "}", ",", ":", " ", "\t", "[", "0", "\x7f"]))
        text = text[:where] + extra + text[where + draw(st.integers(0, 1)) :]
    return text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("stamp", [None, 6000])
@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # the event that fails is told: none need be sought
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large,
                           HealthCheck.function_scoped_fixture, HealthCheck.large_base_example],
)  # fmt: skip
@given(lines=st.lists(event(), min_size=200, max_size=200))
def test_what_the_jvm_takes_for_a_fact_is_that_fact(
    spark: SparkSession, lines: list[bytes], stamp: int | None
) -> None:
    for line, found in zip(lines, clean(spark, lines, stamp=stamp), strict=True):
        assert found in (None, read(line, stamp=stamp)), (line, found)
