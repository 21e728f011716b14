"""The script that Streamlit runs for each viewer: pages, and who may see them."""

from __future__ import annotations

import streamlit as st

from dashboard.screens import answer, now, pending

st.set_page_config(page_title="Whilst", layout="wide", initial_sidebar_state="collapsed")

_PAGES = {
    "now": st.Page(now.draw, title="Now", url_path="now", default=True),
    "pending": st.Page(pending.draw, title="Pending", url_path="pending"),
    "answer": st.Page(answer.draw, title="Answer", url_path="answer"),
}
st.navigation(list(_PAGES.values()), position="top").run()
