"""What the parser did not expect, in the language's own words.

The parser knows the token, the tokens of the statement before it, and the terminals that could
have stood there. Nobody who writes rules should have to read the name of a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from resolution.errors import Diagnostic, quote
from resolution.machine import Token
from resolution.syntax import Span

_UNITS = "ms, s, m, h, d, w"
_DURATION = f"a duration is a whole number with one of {_UNITS} right after it, such as `90s`"

_OPERATORS = {
    "=": "write `=`",
    "=<": "write `<=`",
    "=>": "write `>=`, or `<-` with the head on its left",
    "->": "write `<-`, with the head on its left",
    "<>": "write `!=`",
    "≤": "write `<=`",
    "≥": "write `>=`",
    "≠": "write `!=`",
    "←": "write `<-`",
    "&": "write `,` between the parts of a body",
    "∧": "write `,` between the parts of a body",
    ";": "write a rule for each alternative",
    "|": "write a rule for each alternative",
    "∨": "write a rule for each alternative",
}
_NEGATIONS = ("!", "¬", "\\+")
_NO_NEGATION = "negation is not part of the language yet"

_KEYWORDS = ("UNIT", "STREAM", "DELAY", "RIGID", "QUERY")
_PLAIN = {
    "LPAR": "`(`",
    "_COMMA": "`,`",
    "RPAR": "`)`",
    "ARROW": "`<-`",
    "FROM": '`from "file.csv"`',
    "END": "`.`",
}


def unexpected(token: Token, seen: Sequence[Token], accepted: AbstractSet[str]) -> Diagnostic:
    """The mistake of a statement that begins with `seen` and goes on with `token`."""
    message, hint = _reason(token, seen, accepted)
    start, end = token.start, token.end
    if token.type == "UNCLOSED":
        end = start + 1
    elif message == _NO_NEGATION and token.type in ("UPPER", "LOWER"):
        start, end = seen[-1].start, seen[-1].end  # under `not`, which is what has to go
    return Diagnostic(Span(start, end), message, hint)


def unfinished(seen: Sequence[Token], accepted: AbstractSet[str]) -> Diagnostic:
    """The mistake of a statement that stops after `seen`, where the next one or nothing follows."""
    end = seen[-1].end
    if "END" in accepted:
        return Diagnostic(Span(end, end), "expected `.` at the end of the statement")
    expected = _expected(seen, accepted)
    return Diagnostic(Span(end, end), f"the statement is not finished: expected {expected}")


def _reason(
    token: Token, seen: Sequence[Token], accepted: AbstractSet[str]
) -> tuple[str, str | None]:
    text = token.text
    previous = seen[-1] if seen else None
    match token.type:
        case "UNCLOSED":
            return "a string is not closed", 'it ends with `"`, on the line where it begins'
        case "QUOTED":
            return "a string stands between double quotes", "write `\"` instead of `'`"
        case "MALFORMED":
            return _malformed(text, accepted)
        case "FOREIGN" if text in _NEGATIONS:
            return _NO_NEGATION, None
        case "FOREIGN":
            known = _OPERATORS.get(text) or _OPERATORS[text[0]]
            return f"{quote(text)} is not part of the language", known
        case "STRANGE":
            return _strange(text, accepted)
    if previous is not None:
        told = _after(token, previous, accepted)
        if told is not None:
            return told
    expected = _expected(seen, accepted)
    hint = None
    if "DELAY" in accepted and "LOWER" not in accepted:
        hint = "a stream says how late its facts may come; `delay 0` if they never do"
    elif token.type in ("PLUS", "MINUS"):
        hint = "a time is shifted once, with the variable first: `T+1`, `T-10m`"
    elif len(seen) > 1 and seen[0].type in _KEYWORDS and seen[1].type == "LPAR":
        hint = f"`{seen[0].text}` is taken for a predicate here: is the name behind it missing?"
    elif token.type == "UNDERSCORE":
        hint = "a name that begins with `_` is a variable"
    return f"expected {expected}, found {quote(text)}", hint


def _after(
    token: Token, previous: Token, accepted: AbstractSet[str]
) -> tuple[str, str | None] | None:
    """Mistakes that are known by the token before them."""
    if previous.text == "not" and previous.type == "LOWER" and token.type in ("UPPER", "LOWER"):
        return _NO_NEGATION, None
    if token.type == "LPAR" and previous.type in ("UPPER", "LOWER") and "RPAR" in accepted:
        return "a term has no arguments of its own", None
    if token.type == "DURATION" and "STRING" in accepted:
        return (
            "a duration is no term; it shifts a time",
            f"write `T+{token.text}` or `T-{token.text}`",
        )
    if token.type == "UPPER" and previous.type in ("PLUS", "MINUS") and "DURATION" in accepted:
        return (
            "a time is shifted by a number of time points or a duration, not by a variable",
            "write `T2 <= T1+10m` for a difference of two times",
        )
    return None


def _malformed(text: str, accepted: AbstractSet[str]) -> tuple[str, str | None]:
    message = f"{quote(text)} is neither a number nor a duration"
    if text.startswith("."):
        return message, f"write `0{text}`" if len(text) < 20 else None
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
    if text[len(digits) :] in _UNITS.split(", "):
        return message, "a duration is a whole number; write `90m` for one and a half hours"
    if "DURATION" in accepted:
        return message, _DURATION
    return message, 'a name that begins with a digit stands in quotes: `"4x"`'


def _strange(text: str, accepted: AbstractSet[str]) -> tuple[str, str | None]:
    if text == "\0":
        return "a NUL character cannot stand in a program", "is this a text file, in UTF-8?"
    if text.isalpha():
        constant = {"STRING", "_COMMA", "RPAR"} & accepted
        letters = "predicates, fields and variables have the letters a to z, digits and `_`"
        hint = f'{letters}; a constant may stand in quotes: `"…"`' if constant else letters
        return f"{quote(text)} cannot stand in a bare name", hint
    if text == "/":
        return f"{quote(text)} is not part of the language", "a comment begins with `%` or `#`"
    if text in "[]{}":
        return f"{quote(text)} is not part of the language", "terms stand between `(` and `)`"
    return f"{quote(text)} (U+{ord(text):04X}) is not part of the language", None


def _expected(seen: Sequence[Token], accepted: AbstractSet[str]) -> str:
    """What could have stood after `seen`: the words of a sentence."""
    words = []
    if "UPPER" in accepted:
        words.append(_name_or_term(seen, accepted))
    elif "DURATION" in accepted:
        words.append(
            "a whole number of time points or a duration"
            if "NUMBER" in accepted
            else "a duration, such as `1s`"
        )
    elif "DELAY" in accepted:
        words.append("`delay` and a number of time points or a duration")
    elif "STRING" in accepted:
        words.append('the name of a CSV file, as `"near.csv"`')
    elif "NUMBER" in accepted:
        words.append("a number")
    if "COMPARE" in accepted:
        words.append("a comparison operator")
    elif "EQUALS" in accepted:
        words.append("`=`")
    silent = set()  # what could stand there, and nobody means
    if "LOWER" in accepted:
        silent.add("FROM")  # as a name
    if "COMPARE" in accepted:
        silent.add("ARROW")  # in `V<-5`
    if words:
        silent.add("LPAR")  # in `query (`: the keyword as a name
    words.extend(
        word for terminal, word in _PLAIN.items() if terminal in accepted and terminal not in silent
    )
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _name_or_term(seen: Sequence[Token], accepted: AbstractSet[str]) -> str:
    if not seen:
        return "a declaration, a rule or a query"
    inside = sum((token.type == "LPAR") - (token.type == "RPAR") for token in seen) > 0
    if "STRING" in accepted:
        compared = seen[-1].type in ("COMPARE", "EQUALS")
        return "a term" if inside or compared else "an atom or a comparison"
    if seen[-1].type == "COLON":
        return "a type: string, int or float"
    return "the name of a field" if inside else "the name of a predicate"
