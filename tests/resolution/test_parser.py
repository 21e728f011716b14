"""Text to tree: forms, spans, recovery, encodings."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from resolution.errors import ProgramErrors
from resolution.parser import _LARK, _MACHINE, decode, parse, parse_partial
from resolution.syntax import (
    Atom,
    Comparison,
    Constant,
    Delay,
    Duration,
    Field,
    Number,
    Query,
    Rigid,
    Rule,
    Shifted,
    Stream,
    Unit,
    Variable,
)

X, T = Variable("X"), Variable("T")


def one(text: str) -> object:
    (statement,) = parse(text).statements
    return statement


def messages(text: str) -> list[str]:
    return [mistake.message for mistake in parse_partial(text)[1]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("unit 500ms.", Unit(Duration(500, "ms"))),
        ("stream Alarm() delay 0.", Stream("Alarm", (), Number(0))),
        (
            "stream Temp(device: string, v) delay 90s.",
            Stream("Temp", (Field("device", "string"), Field("v")), Duration(90, "s")),
        ),
        ("stream A(x) delay -1h.", Stream("A", (Field("x"),), Duration(-1, "h"))),
        (
            "delay Temp(wt7, _) = 4.",
            Delay(Atom("Temp", (Constant("wt7"), Variable("_"))), Number(4)),
        ),
        ("rigid Near(a).", Rigid("Near", (Field("a"),))),
        (r'rigid Near(a) from "n\u0065ar.csv".', Rigid("Near", (Field("a"),), "near.csv")),
        ("Near(a).", Rule(Atom("Near", (Constant("a"),)), ())),
        ("query Malf(X, T).", Query(Atom("Malf", (X, T)))),
        (
            "p(X, T-10m) :- q(X, T+1).",
            Rule(
                Atom("p", (X, Shifted(T, "-", Duration(10, "m")))),
                (Atom("q", (X, Shifted(T, "+", Number(1)))),),
            ),
        ),
    ],
)
def test_statements(text: str, expected: object) -> None:
    assert one(text) == expected


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("high", Constant("high")),
        ('"high"', Constant("high")),
        ('"n/a \\" \\u00e9 %"', Constant('n/a " é %')),
        ("1.0", Constant(1)),
        ('"1"', Constant("1")),
        ("-5", Constant(-5)),
        ("1e3", Constant(1000)),
        ("3.50", Constant(3.5)),
        ("-2.5E-1", Constant(-0.25)),
        ("-0.0", Constant(0)),
        ("_", Variable("_")),
        ("_x", Variable("_x")),
        ("Xy_1", Variable("Xy_1")),
        *((word, Constant(word)) for word in ("unit", "stream", "delay", "rigid", "query", "from")),
    ],
)
def test_terms(term: str, expected: object) -> None:
    rule = one(f"p({term}, T) <- {term} < {term}, q({term}, T).")
    assert isinstance(rule, Rule)
    comparison, atom = rule.body
    assert rule.head.terms[0] == expected
    assert comparison == Comparison(expected, "<", expected)  # type: ignore[arg-type]
    assert isinstance(atom, Atom)
    assert atom.terms[0] == expected
    assert type(atom.terms[0].value) is type(expected.value) if hasattr(expected, "value") else True  # type: ignore[union-attr]


def test_less_than_a_negative_number_is_no_arrow() -> None:
    assert one("p(V, T) <- q(V, T), V<-5.") == one("p(V, T) <- q(V, T), V < -5.")
    assert messages("p(V, T) <- q(V, T), V:-5.") == ["expected a comparison operator, found `:-`"]


@pytest.mark.parametrize("word", ["unit", "stream", "delay", "rigid", "query", "from", "not"])
def test_keywords_are_names_where_nothing_else_is_meant(word: str) -> None:
    tree = parse(
        f"stream {word}({word}: {word}) delay 1. delay {word}({word}) = 1."
        f"rigid {word}({word}). {word}({word}, T) <- {word}({word}, T). query {word}({word}, T)."
    )
    assert len(tree.statements) == 5
    assert tree.statements[3].head.predicate == word  # type: ignore[union-attr]


def test_spans_cut_the_text_out() -> None:
    text = (
        "  stream Temp(device : string) delay 1m. % c\nFlag( X ,T + 1 ) <- Temp(-5, T), X>= 3 .\n"
    )
    tree = parse(text)

    def cut(node: object) -> str:
        span = node.span  # type: ignore[attr-defined]
        return text[span.start : span.end]

    stream, rule = tree.statements
    assert isinstance(stream, Stream)
    assert isinstance(rule, Rule)
    assert cut(stream) == "stream Temp(device : string) delay 1m."
    assert cut(stream.fields[0]) == "device : string"
    assert cut(stream.delay) == "1m"
    assert text[stream.name_span.start : stream.name_span.end] == "Temp"
    assert cut(rule) == "Flag( X ,T + 1 ) <- Temp(-5, T), X>= 3 ."
    assert cut(rule.head) == "Flag( X ,T + 1 )"
    assert cut(rule.head.terms[1]) == "T + 1"
    assert cut(rule.body[0].terms[0]) == "-5"  # type: ignore[union-attr]
    assert cut(rule.body[1]) == "X>= 3"
    assert cut(tree.comments[0]) == "% c"


def test_every_mistake_is_told_and_the_rest_is_read() -> None:
    text = "p(X T) <- q(X).\nquery A(T).\nstream B( delay 1.\nquery C(T).\n"
    tree, mistakes = parse_partial(text)
    assert [s.atom.predicate for s in tree.statements if isinstance(s, Query)] == ["A", "C"]
    assert len(mistakes) == 2
    with pytest.raises(ProgramErrors) as caught:
        parse(text, "f.rules")
    assert caught.value.diagnostics == mistakes
    assert str(caught.value).count("f.rules:") == 2


def test_a_missing_end_takes_nothing_with_it() -> None:
    tree, mistakes = parse_partial("query A(T)\nquery B(T)\nquery C(T")
    assert [s.atom.predicate for s in tree.statements if isinstance(s, Query)] == ["A", "B"]
    assert len(mistakes) == 3


def test_a_continued_line_is_not_taken_for_a_new_statement() -> None:
    tree, mistakes = parse_partial("p(T) <- q(T)\n    r(T).\np(T) <- x y,\nq(T).")
    assert tree.statements == ()
    assert len(mistakes) == 2


def test_nothing_is_a_program_without_statements() -> None:
    for text in ("", "  \n", "% only\n# comments", "\ufeff"):
        assert parse(text).statements == ()


def test_decode() -> None:
    assert decode("é".encode()) == "é"
    assert decode(b"\xef\xbb\xbfunit 1s.") == "unit 1s."


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"a\xff", "byte 1 (0xff)"),
        (b"\xef\xbb\xbfa\xff", "byte 4 (0xff)"),
        ("unit 1s.".encode("utf-16"), "byte 0 (0xff)"),
        ("% é\n% caf".encode() + "é".encode("latin-1"), "byte 10 (0xe9)"),
    ],
)
def test_decode_tells_the_byte(data: bytes, place: str) -> None:
    with pytest.raises(ProgramErrors, match="is not UTF-8") as caught:
        decode(data, "f.rules")
    assert place in str(caught.value)


def test_errors_travel_between_processes() -> None:
    with pytest.raises(ProgramErrors) as caught:
        parse("oops", "f.rules")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.diagnostics == caught.value.diagnostics


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "errors").glob("*.rules")))
def test_the_tokens_are_those_of_lark(path: Path) -> None:
    """The machine is quick; what a token is stays lark's to say."""
    text = path.read_text(encoding="utf-8")
    ours = [tuple(token) for token in _MACHINE.tokens(text)]
    assert ours == [(t.type, str(t), t.start_pos, t.end_pos) for t in _LARK.lex(text)]
