"""Runs the lexer and the LALR tables that lark makes of a grammar, a statement at a time.

Lark's own loops keep lines and columns for every token and look every action up through objects.
A program of 100,000 rules has three million tokens: here each is a tuple, and an action is one
look-up. What a text means is lark's alone: terminals, tables and callbacks are taken from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from lark import Lark
from lark.lexer import PatternStr
from lark.parsers.lalr_analysis import Shift

_Action: TypeAlias = tuple[int, Callable[[list[Any]], Any] | None, int, str]
"""The state to go to; or a callback, the number of values it takes, and the rule it reduces to."""


class Token(NamedTuple):
    """A piece of the text, with the name of its terminal and its offsets."""

    type: str
    text: str
    start: int
    end: int


class Unexpected(Exception):
    """A token that cannot stand where it does."""


class Machine:
    """A grammar, ready to run. It has a terminal for any character, so every text has tokens."""

    def __init__(self, lark: Lark, start: str) -> None:
        conf = lark.parse_interactive("", start=start).parser_state.parse_conf
        self.start: int = conf.start_state
        self.end: int = conf.end_state
        self.actions: dict[int, dict[str, _Action]] = {
            state: {
                str(symbol): (argument, None, 0, "")
                if action is Shift
                else (0, conf.callbacks[argument], len(argument.expansion), argument.origin.name)
                for symbol, (action, argument) in actions.items()
            }
            for state, actions in conf.states.items()
        }
        self._ignored = frozenset(lark.ignore_tokens)
        self._words = {
            terminal.pattern.value: terminal.name
            for terminal in lark.terminals
            if isinstance(terminal.pattern, PatternStr) and terminal.pattern.value.isalpha()
        }
        terminals = sorted(  # in the order in which lark tries them
            (t for t in lark.terminals if t.name not in self._words.values()),
            key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name),
        )
        self._pattern = re.compile(
            "|".join(f"(?P<{t.name}>{t.pattern.to_regexp()})" for t in terminals)
        )

    def tokens(self, text: str) -> Iterator[Token]:
        ignored, words = self._ignored, self._words
        for match in self._pattern.finditer(text):
            kind = match.lastgroup or ""
            if kind not in ignored:
                piece = match[0]
                start, end = match.span()
                if kind == "LOWER":
                    kind = words.get(piece, kind)
                yield Token(kind, piece, start, end)


class Parser:
    """The reading of one statement."""

    __slots__ = ("_machine", "_states", "_values")

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._states = [machine.start]
        self._values: list[Any] = []

    def feed(self, token: Token) -> None:
        """Go on with a token. Raises `Unexpected`, and whatever the callbacks raise."""
        actions = self._machine.actions
        states, values = self._states, self._values
        kind = token.type
        while True:
            action = actions[states[-1]].get(kind)
            if action is None:
                raise Unexpected
            state, callback, size, rule = action
            if callback is None:
                states.append(state)
                values.append(token)
                return
            taken = values[-size:] if size else []
            if size:
                del values[-size:]
                del states[-size:]
            values.append(callback(taken))
            states.append(actions[states[-1]][rule][0])

    def result(self) -> Any:
        """The value of a statement that is complete."""
        actions = self._machine.actions
        while self._states[-1] != self._machine.end:
            _, callback, size, rule = actions[self._states[-1]]["$END"]
            assert callback is not None
            taken = self._values[-size:]
            del self._values[-size:]
            del self._states[-size:]
            self._values.append(callback(taken))
            self._states.append(actions[self._states[-1]][rule][0])
        return self._values[-1]

    def accepted(self) -> set[str]:
        """The terminals that could come next."""
        return {kind for kind in self._machine.actions[self._states[-1]] if self._accepts(kind)}

    def _accepts(self, kind: str) -> bool:
        actions = self._machine.actions
        states = self._states.copy()
        while True:
            action = actions[states[-1]].get(kind)
            if action is None:
                return False
            _, callback, size, rule = action
            if callback is None:
                return kind.isupper()
            if size:
                del states[-size:]
            states.append(actions[states[-1]][rule][0])
