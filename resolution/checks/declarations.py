"""Units, streams, rigid predicates and delays: each by itself, and against one another."""

from __future__ import annotations

from collections.abc import Iterator

from resolution.checks.scope import LARGEST, Scope
from resolution.checks.similar import Similar
from resolution.errors import Diagnostic, count, quote
from resolution.program import MILLISECONDS
from resolution.syntax import (
    Amount,
    Constant,
    Delay,
    Duration,
    Field,
    Number,
    Rigid,
    Shifted,
    Stream,
    Variable,
)

TYPES = ("string", "int", "float")
_OTHER_NAMES = {
    **dict.fromkeys(("str", "text", "varchar", "symbol", "name"), "string"),
    **dict.fromkeys(("integer", "long", "bigint", "number"), "int"),
    **dict.fromkeys(("double", "real", "decimal", "numeric"), "float"),
}
_SHOWN = 12  # fields that a hint lists
_FACT_KEYS = ("fact", "args", "time", "arrival")  # what a fact in JSON says besides its fields


def run(scope: Scope) -> Iterator[Diagnostic]:
    yield from _units(scope)
    for declaration in scope.declarations:
        yield from _declaration(declaration)
        yield from _fields(declaration)
    yield from _conflicts(scope)
    yield from _delays(scope)


def _units(scope: Scope) -> Iterator[Diagnostic]:
    for unit in scope.units:
        if unit.duration.value == 0:
            yield Diagnostic(unit.duration.span, "a time point cannot have the length 0")
        yield from too_large(unit.duration)
    for unit in scope.units[1:]:
        yield Diagnostic(unit.span, "the unit is declared already: a program has one")


def _declaration(declaration: Stream | Rigid) -> Iterator[Diagnostic]:
    if isinstance(declaration, Stream):
        yield from _bound(declaration.delay)
    elif not declaration.fields:
        message = f"the rigid predicate {quote(declaration.name)} has no field"
        yield Diagnostic(declaration.name_span, message, "give it at least one")
    elif declaration.source is not None and not declaration.source.strip():
        message = f"the rows of {quote(declaration.name)} are from a file without a name"
        yield Diagnostic(declaration.span, message)


def _bound(delay: Amount) -> Iterator[Diagnostic]:
    if delay.value < 0:
        message = "a delay cannot be negative: no fact arrives before its time point"
        yield Diagnostic(delay.span, message)
    yield from too_large(delay)


def too_large(amount: Amount) -> Iterator[Diagnostic]:
    """An amount of time beyond what can be counted."""
    match amount:
        case Number():
            size = amount.value
        case Duration():
            size = amount.value * MILLISECONDS[amount.unit]
    if size > LARGEST:
        message = f"too long a time: the largest is {LARGEST} time points or milliseconds"
        yield Diagnostic(amount.span, message)


def _fields(declaration: Stream | Rigid) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    types = Similar(TYPES)
    for field in declaration.fields:
        if field.name in seen:
            message = f"{quote(declaration.name)} has a field {quote(field.name)} already"
            yield Diagnostic(field.span, message)
        seen.add(field.name)
        if field.type is not None and field.type not in TYPES:
            yield _unknown_type(field, field.type, types)
        if isinstance(declaration, Stream) and field.name in _FACT_KEYS:
            message = f"the field {quote(field.name)} cannot be given by its name in JSON facts"
            hint = "name it otherwise, or give such facts with `args`"
            yield Diagnostic(field.span, message, hint, "warning")


def _unknown_type(field: Field, name: str, types: Similar) -> Diagnostic:
    known = _OTHER_NAMES.get(name.lower())
    hint = f"write `{known}`" if known else types.hint(name) or "a type is string, int or float"
    return Diagnostic(field.span, f"{quote(name)} is no type", hint)


def _conflicts(scope: Scope) -> Iterator[Diagnostic]:
    for declaration in scope.declarations:
        first = scope.declared[declaration.name]
        if first is not declaration:
            was, now = _word(first), _word(declaration)
            name = quote(declaration.name)
            said = f"{name} is declared as a {was} already"
            message = said if was == now else f"{said}, and cannot be a {now} too"
            yield Diagnostic(declaration.name_span, message)
    folded: dict[str, str] = {}
    places = [(d.name, d.name_span) for d in scope.declared.values()]
    places += [(name, rules[0].head.name_span) for name, rules in scope.heads.items()]
    for name, span in sorted(places, key=lambda place: place[1].start):
        other = folded.setdefault(name.casefold(), name)
        if other != name:
            message = f"{quote(name)} and {quote(other)} are two predicates"
            hint = "upper and lower case are different letters"
            yield Diagnostic(span, message, hint, "warning")


def _word(declaration: Stream | Rigid) -> str:
    return "stream" if isinstance(declaration, Stream) else "rigid predicate"


def _delays(scope: Scope) -> Iterator[Diagnostic]:
    said: dict[tuple[object, ...], Amount] = {}
    for delay in scope.delays:
        pattern = delay.pattern
        yield from _bound(delay.delay)
        stream = scope.declared.get(pattern.predicate)
        if not isinstance(stream, Stream):
            if pattern.predicate not in scope.unread:
                yield _no_stream(scope, delay)
            continue
        if len(pattern.terms) != len(stream.fields):
            names = [field.name for field in stream.fields]
            fields = ", ".join(names[:_SHOWN] + ["…"] * (len(names) > _SHOWN))
            message = (
                f"the delay pattern has {count(len(pattern.terms), 'term')}, "
                f"{quote(stream.name)} has {count(len(stream.fields), 'field')}"
            )
            hint = f"one term for each field, and none for the time: {stream.name}({fields})"
            yield Diagnostic(pattern.span, message, hint)
            continue
        yield from _pattern(delay, stream)
        key = (stream.name, *(t.value if isinstance(t, Constant) else None for t in pattern.terms))
        if key in said:
            same = said[key] == delay.delay
            message = "the delay of this pattern is given already"
            yield Diagnostic(
                delay.span,
                message if same else f"{message}, and is another one",
                None,
                "warning" if same else "error",
            )
        said.setdefault(key, delay.delay)


def _no_stream(scope: Scope, delay: Delay) -> Diagnostic:
    name = delay.pattern.predicate
    kind = scope.kind(name)
    if kind is None:
        message, hint = f"there is no stream {quote(name)}", scope.similar.hint(name)
    else:
        message = f"{quote(name)} is a {kind} predicate: only a stream has a delay"
        hint = None
    return Diagnostic(delay.pattern.name_span, message, hint)


def _pattern(delay: Delay, stream: Stream) -> Iterator[Diagnostic]:
    hint = "a pattern has a constant or `_` for each field"
    open_: list[str] = []
    for term in delay.pattern.terms:
        match term:
            case Shifted():
                yield Diagnostic(term.span, "a delay pattern has no times", hint)
            case Variable() if term.name != "_" and term.name in open_:
                message = f"{quote(term.name)} stands twice in a delay pattern"
                yield Diagnostic(term.span, message, hint)
            case Variable():
                open_.append(term.name)
    if len(open_) == len(delay.pattern.terms):
        message = f"this pattern holds for every fact of {quote(stream.name)}"
        hint = "it counts as much as the declaration: the larger of the two delays is taken"
        yield Diagnostic(delay.pattern.span, message, hint, "warning")
