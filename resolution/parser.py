"""Program text to syntax tree.

The text is read a statement at a time. A statement that is no statement is told about and skipped,
and reading goes on behind it: `parse_partial` gives the tree of all the others.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Literal, cast

from lark import Lark, Transformer, v_args

from resolution.errors import Diagnostic, ProgramErrors, quote
from resolution.machine import Machine, Parser, Token, Unexpected
from resolution.syntax import (
    Amount,
    Atom,
    Comment,
    Comparison,
    Constant,
    Delay,
    Duration,
    Field,
    Literal_,
    Number,
    Operator,
    Query,
    Rigid,
    Rule,
    Shifted,
    Source,
    Span,
    Statement,
    Stream,
    Term,
    Tree,
    Unit,
    Variable,
)
from resolution.terms import constant
from resolution.wording import unexpected, unfinished

_MISTAKES = 20_000  # a text with more syntax mistakes is no program: reading stops
_DIGITS = 400  # of one number: more than the largest floating-point number has


def parse(text: str, name: str = "program") -> Tree:
    """The tree of a program. Raises `ProgramErrors` with every syntax mistake of it."""
    tree, mistakes = parse_partial(text, name)
    if mistakes:
        raise ProgramErrors(mistakes, tree.source)
    return tree


def parse_partial(text: str, name: str = "program") -> tuple[Tree, tuple[Diagnostic, ...]]:
    """The tree of the statements that could be read, and the mistakes of the others."""
    return _Reading(text, name).result()


def decode(data: bytes, name: str = "program") -> str:
    """The text of a program file: UTF-8, with or without a byte-order mark."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = error.start + (3 if data.startswith(b"\xef\xbb\xbf") else 0)
        place = len(data[:start].decode("utf-8-sig"))
        wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        mistake = Diagnostic(
            Span(place, place + 1),
            f"byte {start} (0x{data[start]:02x}) is not UTF-8",
            f"save the file as UTF-8{'; it looks like UTF-16' if wide else ''}",
        )
        source = Source(data.decode("utf-8-sig", errors="replace"), name)
        raise ProgramErrors([mistake], source) from None


class _Refused(Exception):
    """A token that has the form of its kind, and says nothing."""

    def __init__(self, start: int, end: int, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(Span(start, end), message, hint)


class _Reading:
    """One pass over a text."""

    def __init__(self, text: str, name: str) -> None:
        self._source = Source(text, name)
        self._statements: list[Statement] = []
        self._comments: list[Comment] = []
        self._mistakes: list[Diagnostic] = []
        self._parser = Parser(_MACHINE)
        self._seen: list[Token] = []  # the statement so far
        self._column: int | None = None  # where it begins in its line, once that matters
        self._skipping = False  # it has a mistake: go on to its end

    def result(self) -> tuple[Tree, tuple[Diagnostic, ...]]:
        for token in _MACHINE.tokens(self._source.text):
            if token.type == "COMMENT":
                self._comments.append(Comment(token.text.rstrip(), _span(token, token)))
            else:
                self._take(token)
                if len(self._mistakes) == _MISTAKES:
                    place = _span(token, token)
                    self._mistakes.append(Diagnostic(place, "too many mistakes: stopped here"))
                    break
        else:
            if self._seen and not self._skipping:
                self._break_off()
        tree = Tree(tuple(self._statements), tuple(self._comments), self._source)
        return tree, tuple(self._mistakes)

    def _take(self, token: Token) -> None:
        if self._skipping:
            if self._begins(token):
                self._restart()
            else:
                self._seen[-1] = token
                if token.type == "END":
                    self._restart()
                return
        try:
            self._parser.feed(token)
        except Unexpected:
            if self._begins(token):
                self._break_off()
                self._restart()
                self._take(token)
                return
            told = unexpected(token, self._seen, self._parser.accepted())
            self._refuse(token, told)
        except _Refused as refused:
            self._refuse(token, refused.diagnostic)
        else:
            self._seen.append(token)
            if token.type == "END":
                self._statements.append(self._parser.result())
                self._restart()

    def _begins(self, token: Token) -> bool:
        """Whether a token looks like the start of a statement although none has ended.

        It does where it stands on a line of its own as far left as the statement before, and
        nothing on that side is waiting for more.
        """
        if not self._seen or token.type not in _WORDS:
            return False
        first, last = self._seen[0], self._seen[-1]
        text = self._source.text
        line = text.rfind("\n", last.end, token.start) + 1
        if line == 0 or last.type in ("_COMMA", "ARROW"):
            return False
        if self._column is None:
            self._column = first.start - (text.rfind("\n", 0, first.start) + 1)
        return token.start - line <= self._column

    def _break_off(self) -> None:
        """Tell that the statement has no end; keep it where only the `.` is missing."""
        accepted = self._parser.accepted()
        self._mistakes.append(unfinished(self._seen, accepted))
        if "END" in accepted:
            place = self._seen[-1].end
            try:
                self._parser.feed(Token("END", ".", place, place))
                self._statements.append(self._parser.result())
            except _Refused as refused:
                self._mistakes.append(refused.diagnostic)

    def _refuse(self, token: Token, mistake: Diagnostic) -> None:
        self._mistakes.append(mistake)
        if token.type == "END":
            self._restart()
        else:
            self._skipping = True
            self._seen.append(token)
            del self._seen[1:-1]  # only the first and the last are looked at from here on

    def _restart(self) -> None:
        self._parser = Parser(_MACHINE)
        self._seen = []
        self._column = None
        self._skipping = False


def _span(first: Token, last: Token) -> Span:
    return Span(first.start, last.end)


def _number(token: Token) -> int | float:
    if len(token.text) > _DIGITS:
        raise _Refused(token.start, token.end, f"a number has at most {_DIGITS} characters")
    if token.text.isdigit():
        return int(token.text)
    try:  # read as JSON reads it, so that a fact and a rule mean the same number
        return cast("int | float", constant(float(token.text)))
    except ValueError:
        message = f"{quote(token.text)} is too large a number"
        raise _Refused(token.start, token.end, message) from None


@v_args(inline=True)
class _Build(Transformer[Token, Statement]):
    """One method a rule of the grammar. Called while parsing, so it never sees a deep tree."""

    def unit(self, first: Token, length: Token, end: Token) -> Unit:
        return Unit(self.duration(length), _span(first, end))

    def stream(
        self,
        first: Token,
        name: Token,
        _open: Token,
        fields: tuple[Field, ...] | None,
        _close: Token,
        _delay: Token,
        bound: Amount,
        end: Token,
    ) -> Stream:
        return Stream(name.text, fields or (), bound, _span(first, end), _span(name, name))

    def delay(
        self, first: Token, pattern: Atom, _equals: Token, bound: Amount, end: Token
    ) -> Delay:
        return Delay(pattern, bound, _span(first, end))

    def rigid(
        self,
        first: Token,
        name: Token,
        _open: Token,
        fields: tuple[Field, ...] | None,
        _close: Token,
        _from: Token | None,
        file: Token | None,
        end: Token,
    ) -> Rigid:
        source = None if file is None else _text(file)
        return Rigid(name.text, fields or (), source, _span(first, end), _span(name, name))

    def query(self, first: Token, atom: Atom, end: Token) -> Query:
        return Query(atom, _span(first, end))

    def rule(
        self, head: Atom, _arrow: Token | None, body: tuple[Literal_, ...] | None, end: Token
    ) -> Rule:
        return Rule(head, body or (), Span(head.span.start, end.end))

    def field(self, name: Token, _colon: Token | None, kind: Token | None) -> Field:
        span = _span(name, kind or name)
        return Field(name.text, None if kind is None else kind.text, span)

    def fields(self, *fields: Field) -> tuple[Field, ...]:
        return fields

    def body(self, *literals: Literal_) -> tuple[Literal_, ...]:
        return literals

    def terms(self, *terms: Term) -> tuple[Term, ...]:
        return terms

    def atom(self, name: Token, _open: Token, terms: tuple[Term, ...] | None, close: Token) -> Atom:
        return Atom(name.text, terms or (), _span(name, close), _span(name, name))

    def comparison(self, left: Term, operator: Token, right: Term) -> Comparison:
        span = Span(left.span.start, right.span.end)
        return Comparison(left, cast(Operator, operator.text), right, span)

    def below_negative(self, left: Term, arrow: Token, number: Token) -> Comparison:
        if arrow.text != "<-":
            raise _Refused(
                arrow.start, arrow.end, f"expected a comparison operator, found {quote(arrow.text)}"
            )
        minus = arrow.start + 1
        value = Constant(-_number(number), Span(minus, number.end))
        return Comparison(left, "<", value, Span(left.span.start, value.span.end))

    def variable(self, name: Token) -> Variable:
        return Variable(name.text, _span(name, name))

    def shifted(self, variable: Variable, sign: Token, amount: Amount) -> Shifted:
        span = Span(variable.span.start, amount.span.end)
        return Shifted(variable, cast(Literal["+", "-"], sign.text), amount, span)

    def symbol(self, name: Token) -> Constant:
        return Constant(name.text, _span(name, name))

    def string(self, text: Token) -> Constant:
        return Constant(_text(text), _span(text, text))

    def number(self, number: Token) -> Constant:
        return Constant(_number(number), _span(number, number))

    def negative(self, minus: Token, number: Token) -> Constant:
        return Constant(-_number(number), _span(minus, number))

    def points(self, number: Token) -> Number:
        value = _number(number)
        if not isinstance(value, int):
            hint = "write a duration for a part of a time point: `1500ms`"
            message = f"{quote(number.text)} is not a whole number of time points"
            raise _Refused(number.start, number.end, message, hint)
        return Number(value, _span(number, number))

    def duration(self, length: Token) -> Duration:
        digits = length.text.rstrip("mshdw")
        if len(digits) > _DIGITS:
            raise _Refused(length.start, length.end, f"a number has at most {_DIGITS} characters")
        return Duration(int(digits), length.text[len(digits) :], _span(length, length))

    def below_zero(self, minus: Token, amount: Amount) -> Amount:
        span = Span(minus.start, amount.span.end)
        if isinstance(amount, Number):
            return Number(-amount.value, span)
        return Duration(-amount.value, amount.unit, span)


def _text(token: Token) -> str:
    """The value of a quoted string; escapes are those of JSON."""
    start, end = token.start, token.end
    try:
        value = cast(str, json.loads(token.text, strict=False))
    except json.JSONDecodeError as error:
        hint = r"`\` begins one of \" \\ \/ \b \f \n \r \t \uXXXX; a `\` itself is `\\`"
        at = start + error.pos
        raise _Refused(at, at + 1, "an unknown escape in a string", hint) from None
    try:
        value.encode()
    except UnicodeEncodeError:
        message = "a string holds half of a surrogate pair, which is no character"
        raise _Refused(start, end, message) from None
    return value


_LARK = Lark(
    files("resolution").joinpath("grammar.lark").read_text(encoding="utf-8"),
    parser="lalr",
    lexer="basic",
    start=["statement", "aside"],
    maybe_placeholders=True,
    transformer=_Build(),
)
_MACHINE = Machine(_LARK, "statement")
_WORDS = {"UPPER", "LOWER", "UNIT", "STREAM", "DELAY", "RIGID", "QUERY", "FROM"}
