"""The script that Streamlit runs for each viewer: pages, and who may see them."""

from __future__ import annotations

import streamlit as st

from dashboard import sign_in
from dashboard.screens import answer, decided, health, now, pending, rules

st.set_page_config(page_title="Whilst", layout="wide", initial_sidebar_state="collapsed")

# Streamlit leaves room for a title that these pages do not have, and puts each filter on a line
# of its own where the window is narrow: the table would begin below the screen.
st.html(
    """<style>
    .stMainBlockContainer {padding-top: 4.5rem; padding-bottom: 3rem}
    @media (max-width: 640px) {
      .stHorizontalBlock {gap: .5rem}
      .stHorizontalBlock > .stColumn {min-width: calc(50% - .5rem); flex: 1 1 calc(50% - .5rem)}
    }
    </style>"""
)

_PAGES = [
    st.Page(now.draw, title="Now", default=True),
    st.Page(pending.draw, title="Pending", url_path="pending"),
    st.Page(decided.confirmed, title="Confirmed", url_path="confirmed"),
    st.Page(decided.refuted, title="Refuted", url_path="refuted"),
    st.Page(answer.draw, title="Answer", url_path="answer", visibility="hidden"),
    st.Page(rules.draw, title="Rules", url_path="rules"),
    st.Page(health.draw, title="Health", url_path="health"),
]
if sign_in.admitted():
    st.navigation(_PAGES, position="top").run()
else:
    st.navigation([st.Page(lambda: None, title="Sign in")], position="hidden").run()
