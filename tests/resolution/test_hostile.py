"""Files that mean harm, or are no programs: a clear error, in bounded time and memory."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolution.checks import check
from resolution.errors import SHOWN, Diagnostic, ProgramErrors, report
from resolution.parser import decode, parse, parse_partial
from resolution.printer import format
from resolution.syntax import Tree

MEGABYTE = 1_000_000


def told(text: str) -> tuple[Tree, list[Diagnostic], str]:
    """What is found in a text, and the report of it, which has to be short."""
    tree, mistakes = parse_partial(text, "hostile.rules")
    found = [*mistakes, *check(tree)]
    shown = report(found, tree.source)
    assert len(shown) < 100_000
    assert all(len(line) < 400 for line in shown.splitlines())
    return tree, found, shown


@pytest.mark.parametrize(
    "text",
    [
        "(" * MEGABYTE,
        ")" * MEGABYTE,
        "p(" * (MEGABYTE // 2),
        "p(X, T) <- q(" + "f(" * 100_000 + "X" + ")" * 100_000 + ", T).",
        "\0" * 100_000,
        '"' * MEGABYTE,
        "'" * MEGABYTE,
        '"' + "a" * MEGABYTE,
        '"' + "\\" * MEGABYTE,
        "." * 100_000,
        "a" * MEGABYTE,
        "1" * MEGABYTE + "x",
        "1." * (MEGABYTE // 2),
        "p(" + "1" * MEGABYTE + ", T).",
        "p(T+" + "1" * MEGABYTE + "s) <- q(T).",
        "p(1e" + "9" * MEGABYTE + ", T).",
        "-" * 100_000,
        "<-" * 100_000,
        "=" * MEGABYTE,
        "\ud800",
    ],
    ids=lambda text: text[:4].encode("unicode_escape").decode() + "…" + text[-4:].strip("\0"),
)
def test_no_program(text: str) -> None:
    tree, found, _ = told(text)
    assert tree.statements == ()
    assert found


@pytest.mark.parametrize(
    "text",
    [
        "%" * MEGABYTE,
        " " * MEGABYTE,
        "\n" * MEGABYTE,
        "\r" * MEGABYTE,
        "% c\n" * 100_000,
    ],
    ids=["comment", "blanks", "lines", "returns", "comments"],
)
def test_nothing_at_length(text: str) -> None:
    assert parse(text).statements == ()
    assert len(format(text)) <= len(text) + 1
    _, found, _ = told(text)
    assert [mistake.message for mistake in found] == [
        "there is no query, so there is nothing to answer"
    ]


def test_ten_thousand_mistakes_are_counted_and_fifty_shown() -> None:
    _, found, shown = told("stream S(x) delay 0. query S(X, T).\n" + "p(X T) <- q.\n" * 10_000)
    assert len(found) == 10_000
    assert shown.count("error:") == SHOWN
    assert shown.endswith("and 9950 more")


def test_ten_thousand_misspelt_names() -> None:
    rules = "".join(f"p(X, T) <- Temp{i}(X, T), T > {i}.\n" for i in range(10_000))
    _, found, _ = told(f"stream Temp(x) delay 0. query p(X, T).\n{rules}")
    assert sum(mistake.severity == "error" for mistake in found) == 10_000


def test_reading_stops_where_nothing_makes_sense() -> None:
    _, found, _ = told(". " * 100_000)
    assert len(found) < 30_000
    assert found[-1].message == "too many mistakes: stopped here"


def test_one_endless_line() -> None:
    rules = " ".join(f"p{i}(X, T) <- S(X, T), X > {i}." for i in range(5_000))
    tree, found, shown = told(f"stream S(x) delay 0. {rules} query p0(X, T). query q(X, T).")
    assert len(tree.statements) == 5_003
    assert "`q` cannot be asked for: nothing defines it" in shown or len(found) > SHOWN


def test_one_endless_rule() -> None:
    body = ", ".join(f"S(X, T+{i})" for i in range(20_000))
    tree, found, _ = told(f"stream S(x) delay 0. p(X, T) <- {body}. query p(X, T).")
    assert found == []
    assert parse(format(tree.source.text)) == tree


def test_a_stream_of_ten_thousand_fields() -> None:
    names = ", ".join(f"f{i}" for i in range(10_000))
    _, found, _ = told(f"stream S({names}) delay 0. delay S(a) = 1. query S(X, T).")
    assert len(found) == 2


def test_many_rules() -> None:
    rules = "".join(
        f"p{i}(X, T+1) <- p{i + 1}(X, T), S(X, T), X != {i}, Near(X, _).\nNear(a, {i}).\n"
        f"delay S({i}) = {i}.\nstream S{i}(x) delay 1.\n"
        for i in range(5_000)
    )
    tree, found, _ = told(
        f"stream S(x) delay 0. rigid Near(a, b). {rules} p5000(X, T) <- S(X, T). query p0(X, T)."
    )
    assert len(tree.statements) == 20_004
    assert {mistake.severity for mistake in found} == {"warning"}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "latin-1"])
def test_other_encodings(encoding: str) -> None:
    data = ("% é\nunit 1s.\n" * 1000).encode(encoding)
    with pytest.raises(ProgramErrors) as caught:
        parse(decode(data, "f.rules"), "f.rules")
    assert "UTF-8" in str(caught.value)


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    try:
        told(decode(data))
    except ProgramErrors as errors:
        told_at = str(errors)
        assert "is not UTF-8" in told_at


LETTERS = ["p", "X", "(", ")", ",", ".", "<-", " ", "\n", "1", "s", '"', "-", "+", "=", "query "]


@given(st.lists(st.sampled_from([*LETTERS, "stream ", "%", "'", "\0", "é", "_", "<", ":", "!"])))
def test_any_tokens(parts: list[str]) -> None:
    tree, _, _ = told("".join(parts))
    for statement in tree.statements:
        assert tree.source.text[statement.span.start : statement.span.end].strip()


def test_any_program_with_a_piece_cut_out() -> None:
    text = (
        "unit 1s.\nstream Temp(device: string, level) delay 90s.\ndelay Temp(wt7, _) = 4.\n"
        'rigid Near(a, b) from "n.csv".\nFlag(X, T) <- Temp(X, high, T), T > 5, Near(X, "y").\n'
        "query Flag(X, T).\n"
    )
    pick = random.Random(7)
    for _ in range(500):
        start = pick.randrange(len(text))
        told(text[:start] + text[start + pick.randrange(12) :])


def test_the_language_needs_neither_spark_nor_a_database() -> None:
    code = (
        "import sys, resolution, resolution.checks, resolution.parser, resolution.printer;"
        "print(sorted({'pyspark', 'sqlalchemy', 'storage', 'monitor'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
