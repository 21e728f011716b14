"""The text of a program in colours. Every character stays; what is no token is plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dashboard.markup import Node, h

__all__ = ["highlighted"]

_TOKENS = re.compile(
    r"""(?P<comment>[%\#][^\n]*)
      | (?P<text>"(?:[^"\\\n]|\\.)*"?)
      | (?P<word>\b(?:unit|stream|delay|rigid|query|from)\b(?!\s*[(,)]))
      | (?P<predicate>\b[A-Za-z]\w*(?=\s*\())
      | (?P<number>(?<!\w)\d+(?:\.\d+)?(?:ms|s|m|h|d|w)?\b)
      | (?P<variable>\b[A-Z_]\w*\b)""",
    re.VERBOSE,
)


def highlighted(text: str) -> Node:
    return h("pre", *_parts(text), class_="program", tabindex="0")


def _parts(text: str) -> Iterator[Node]:
    place = 0
    for found in _TOKENS.finditer(text):
        if found.start() > place:
            yield text[place : found.start()]
        yield h("span", found[0], class_=found.lastgroup)
        place = found.end()
    if place < len(text):
        yield text[place:]
