"""Filters of the tables, kept in the URL so that a view can be shared."""

from __future__ import annotations

import json
import re
from typing import Any

import streamlit as st

from dashboard import queries
from dashboard.queries import Filter, Run
from dashboard.scope import midnight, source

__all__ = ["chosen", "parse_bindings"]

_BINDING = re.compile(
    r"""\s*([A-Za-z_]\w*)\s*=\s*
        ("(?:[^"\\]|\\.)*" | [^,"]+?)
        \s*(?:,|$)""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")


def parse_bindings(text: str) -> dict[str, Any]:
    """`X = wt2, Y = 3` as a mapping. Raises ValueError, saying what is wanted, for anything else.

    Values are written as in programs: `1` is the number, `"1"` the string.
    """
    found: dict[str, Any] = {}
    place = 0
    while place < len(text):
        match = _BINDING.match(text, place)
        if match is None:
            raise ValueError("write bindings as X = wt2, Y = 3")
        name, value = match.groups()
        if value.startswith('"'):
            try:
                found[name] = json.loads(value, strict=False)
            except json.JSONDecodeError:
                raise ValueError(f"{value} is no string") from None
        elif _NUMBER.fullmatch(value):
            number = float(value)
            found[name] = int(number) if number.is_integer() else number
        else:
            found[name] = value
        place = match.end()
    return found


def _from_the_start() -> None:
    """Another filter is another list: it begins at its first page."""
    for name in ("after", "before"):
        st.query_params.pop(name, None)


def chosen(run: Run) -> Filter | None:
    """What the person asks for; None where it cannot be asked, and the page says why."""
    names = [one.query for one in source().ask(queries.queries_now, run.id, midnight())]
    columns = st.columns([2, 3, 3])
    with columns[0]:
        query = st.selectbox(
            "Query",
            names,
            index=None,
            placeholder="all",
            key="query",
            bind="query-params",
            on_change=_from_the_start,
        )
    with columns[1]:
        bindings = st.text_input(
            "Bindings",
            key="binding",
            placeholder="X = wt2",
            bind="query-params",
            on_change=_from_the_start,
        )
    with columns[2]:
        text = st.text_input(
            "Text in the answer", key="text", bind="query-params", on_change=_from_the_start
        )
    try:
        wanted = parse_bindings(bindings or "")
    except ValueError as error:
        with columns[1]:
            st.text(f"{error}")
        return None
    return Filter(query, json.dumps(wanted, sort_keys=True) if wanted else None, text or None)
