"""Tree to text, and the one layout."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from resolution.parser import _MACHINE, parse
from resolution.printer import WIDTH, format, show
from resolution.syntax import Tree
from tests.resolution.strategies import trees


@given(trees())
def test_reading_what_is_printed_gives_the_tree(tree: Tree) -> None:
    assert parse(show(tree)) == tree


@st.composite
def untidy(draw: st.DrawFn) -> tuple[Tree, str]:
    """A tree, and its text with blanks and comments between any two tokens."""
    tree = draw(trees())
    text = show(tree)
    parts: list[str] = []
    at = 0
    pick = random.Random(draw(st.integers(0, 2**32)))  # a draw for each gap would be slow
    gaps = [" ", "", "", "\n", "\n\n\n", "\t", "% c", "# c", "  % c\r"]
    for token in _MACHINE.tokens(text):
        gap = pick.choice(gaps)
        if "c" in gap:
            gap += f"{len(parts)}\n"
        parts += [text[at : token.start], gap, token.text]
        at = token.end
    end = draw(st.sampled_from(["", "\n", "% the end", "\n\n# the end"]))
    return tree, "".join([*parts, text[at:], end])


@given(untidy())
def test_format_keeps_tree_and_comments(case: tuple[Tree, str]) -> None:
    tree, text = case
    before, after = parse(text), parse(format(text))
    assert before == after == tree
    assert Counter(c.text for c in after.comments) == Counter(c.text for c in before.comments)


@given(untidy())
def test_format_is_idempotent(case: tuple[Tree, str]) -> None:
    once = format(case[1])
    assert format(once) == once
    assert "\n\n\n" not in once
    assert not any(line.endswith((" ", "\t")) for line in once.split("\n"))


@given(trees())
def test_format_is_the_layout_of_show(tree: Tree) -> None:
    """Blank lines aside, which the first takes from the text and the second from the tree."""
    text = show(tree)
    assert format(text) == text
    assert format(text.replace("\n\n", "\n")) == text.replace("\n\n", "\n")


def test_layout() -> None:
    text = """\
%   the first words


unit 1s.  % one
stream   Temp( device:string,level )delay 1.%two
Flag(X,T):-Temp(X,"high",T),X<-5.   % a line by itself
stream Long(x) delay 0. query Flag(X, T).

  % before the rule
Cool(X, T+1) <- % why
    Flag(X, T), % first
    # Flag(X, T+2),
    Flag(X, % inside
        T+1)
    . % done
rigid % where?
  Near(a) from "near.csv".
# the end
"""
    assert (
        format(text)
        == """\
%   the first words

unit 1s.                                     % one
stream Temp(device: string, level) delay 1.  %two
Flag(X, T) <- Temp(X, high, T), X < -5.      % a line by itself
stream Long(x) delay 0.
query Flag(X, T).

% before the rule
Cool(X, T+1) <-  % why
    Flag(X, T),  % first
    # Flag(X, T+2),
    % inside
    Flag(X, T+1).  % done
% where?
rigid Near(a) from "near.csv".
# the end
"""
    )


def test_a_long_body_has_a_literal_a_line() -> None:
    short = "p(T) <- q(T), r(T)."
    tree = parse(short)
    (rule,) = tree.statements
    long = Tree((replace(rule, body=rule.body * 10),))  # type: ignore[union-attr]
    lines = show(long).splitlines()
    assert lines[:3] == ["p(T) <-", "    q(T),", "    r(T),"]
    assert lines[-1] == "    r(T)."
    assert len(lines) == 21
    assert show(tree) == f"{short}\n"
    assert len(short) < WIDTH


def test_carriage_returns_go() -> None:
    assert format("unit 1s. % a\r\n\r\n% b\r\n") == "unit 1s.  % a\n\n% b\n"
