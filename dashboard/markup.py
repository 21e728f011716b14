"""What a page shows, as a tree of elements that the browser builds node by node.

Text from data only ever becomes a text node or the value of an attribute: nothing here, nor
in `live.js`, reads a string as HTML or Markdown. An element is a list,
`[tag, attributes, *children]`, and a child is an element or a text. Four attributes are ours:

    key     keeps an element (and with it scroll, focus and selection) where its neighbours change
    time    milliseconds since 1970: the browser writes it in its own time zone
    left    milliseconds since 1970: the browser counts down to it
    gone    milliseconds since 1970: the browser counts up from it
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias
from urllib.parse import urlencode

__all__ = ["Node", "answer_link", "bag", "count", "h", "joined", "link", "unseen"]

Node: TypeAlias = "list[Any] | str"


def h(tag: str, *children: Node | None, **attributes: object) -> Node:
    """An element. `class_` is the attribute `class`; `_` in a name is `-`; None leaves it out."""
    named = {
        name.rstrip("_").replace("_", "-"): value
        for name, value in attributes.items()
        if value is not None and value is not False
    }
    return [tag, named, *(child for child in children if child is not None)]


def bag(class_: str, *children: Node | None, **attributes: object) -> Node:
    """A `div` of that class."""
    return h("div", *children, class_=class_, **attributes)


def joined(nodes: Iterable[Node], separator: str = ", ") -> list[Node]:
    """The nodes with a text between each two."""
    found: list[Node] = []
    for node in nodes:
        found += [separator, node] if found else [node]
    return found


def unseen(title: str) -> Node:
    """The heading of a page for who reads it with the ears; the eyes have it in the navigation."""
    return h("h1", title, class_="unseen")


def link(
    page: str, text: Node, query: Mapping[str, object] | None = None, class_: str | None = None
) -> Node:
    """A link to a page of ours, followed without loading everything anew."""
    known = {name: str(value) for name, value in (query or {}).items() if value is not None}
    href = f"{page}?{urlencode(known)}" if known else page
    return h("a", text, href=href, class_=class_)


def answer_link(run: int, answer_id: object, text: Node) -> Node:
    return link("answer", text, {"run": run, "id": answer_id}, "answer")


def count(number: float | None) -> str:
    """A number as people read it: 1,234,567."""
    return "–" if number is None else f"{number:,.0f}"
