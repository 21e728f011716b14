"""Pages of a long list: where one begins is in the URL, and so can be shared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import streamlit as st

from dashboard.queries import PAGE

__all__ = ["buttons", "place", "window"]

Row = TypeVar("Row")


def place() -> tuple[str | None, bool]:
    """The row at which the page begins, as text, and whether it is read backwards from there."""
    if before := st.query_params.get("before"):
        return before, True
    return st.query_params.get("after"), False


def window(rows: Sequence[Row], begun: bool, back: bool) -> tuple[Sequence[Row], bool, bool]:
    """The rows of the page, out of one row more; whether there are rows before, and after."""
    more = len(rows) > PAGE
    if back:
        return rows[-PAGE:], more, True
    return rows[:PAGE], begun, more


def buttons(earlier: str | None, later: str | None, *, away: bool) -> None:
    """To the first page, the one before and the next; a button that leads nowhere is off."""

    def go(**where: str) -> None:
        for name in ("after", "before"):
            st.query_params.pop(name, None)
        st.query_params.update(where)

    with st.container(horizontal=True):
        st.button("First", on_click=go, disabled=not away, key="first")
        st.button(
            "Previous",
            on_click=go,
            kwargs={"before": earlier},
            disabled=earlier is None,
            key="previous",
        )
        st.button("Next", on_click=go, kwargs={"after": later}, disabled=later is None, key="next")
