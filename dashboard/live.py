"""Puts a tree of `dashboard.markup` on the page."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dashboard.markup import Node

__all__ = ["show"]

_HERE = Path(__file__).parent
_mount = st.components.v2.component(
    "whilst",
    html='<div class="whilst"></div>',
    css=(_HERE / "live.css").read_text(encoding="utf-8"),
    js=(_HERE / "live.js").read_text(encoding="utf-8"),
)


def show(key: str, *nodes: Node | None) -> None:
    """Show the nodes in place of those shown under that key before.

    What is the same as a second ago is not sent again: Streamlit knows it by its hash. So times
    that pass are left to the browser, and stand in no tree.
    """
    tree = [node for node in nodes if node is not None]
    _mount(key=key, data={"nodes": tree})
