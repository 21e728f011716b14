"""What all pages share: the store they read, the runs in it, and the program that is looked at."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import streamlit as st

from dashboard import queries
from dashboard.live import show
from dashboard.markup import Node, bag, h
from dashboard.queries import Run
from dashboard.reading import Source, TooSlow
from dashboard.times import Clock
from storage.errors import StoreError

__all__ = ["chosen_run", "clock_of", "empty", "midnight", "refreshed", "runs", "source", "use"]

_log = logging.getLogger(__name__)
_source: Source | None = None


def use(url: str) -> None:
    """Read the store at this URL from now on."""
    global _source
    if _source is not None:
        _source.close()
    _source = Source(url)


def source() -> Source:
    assert _source is not None, "dashboard.scope.use(url) comes first"
    return _source


def runs() -> list[Run]:
    return source().ask(queries.current_runs)


def clock_of(run: Run) -> Clock:
    return Clock(run.unit_ms, run.complete_tau, run.status == "running", run.seen_at.timestamp())


def chosen_run() -> Run | None:
    """The run of the program that the URL names, else of the first; a choice where there are more.

    None where there is no run, or no store: the page has been told so.
    """
    try:
        known = {run.name: run for run in runs()}
    except StoreError as error:
        st.session_state["waiting"] = True
        _waiting(str(error))
        return None
    if not known:
        _nothing_yet()
        return None
    if len(known) == 1:
        return next(iter(known.values()))
    name = st.selectbox("Program", list(known), key="program", bind="query-params")
    return known[name]


@st.fragment(run_every=1)
def _waiting(reason: str) -> None:
    """The page cannot be drawn; as soon as it can, it is."""
    try:
        runs()
    except StoreError as error:
        show("trouble", banner(str(error), None))
        return
    st.rerun()


@st.fragment(run_every=1)
def _nothing_yet() -> None:
    if runs():
        st.rerun()
    show("nothing", no_runs())


def no_runs() -> Node:
    return empty(
        "Nothing has run into this store yet.",
        "Start a run, and its answers appear here by themselves:",
        "whilst run PROGRAM --source FACTS",
    )


def empty(title: str, hint: str, command: str | None = None) -> Node:
    """What stands where there is nothing to show: why, and what to do next."""
    return bag("empty", h("strong", title), h("p", hint), h("code", command) if command else None)


def banner(reason: str, since: float | None) -> Node:
    told: list[Node] = [h("strong", "The store does not answer. "), reason + ". "]
    if since is not None:
        told += [
            "What is shown was read before ",
            h("time", time=round(since * 1000), unit=1000),
            "; it goes on by itself as soon as the store is back.",
        ]
    return bag("banner", *told, role="alert")


_DEFECT = bag(
    "banner defect",
    h("strong", "This page cannot be drawn. "),
    "That is a defect of the dashboard, not of the store; its log says more.",
    role="alert",
)


def refreshed(draw: Callable[..., None]) -> Callable[..., None]:
    """Draw again every second. Trouble with the store is told above what was known before."""

    @st.fragment(run_every=1)
    @functools.wraps(draw)
    def drawn(*args: object, **named: object) -> None:
        above = st.container()
        try:
            draw(*args, **named)
        except TooSlow as error:
            show("slow", empty("This takes too long.", f"{error}."))
        except StoreError as error:
            with above:
                show("banner", banner(str(error), None))
            return
        except Exception:
            _log.exception("a page could not be drawn")
            with above:
                show("banner", _DEFECT)
            return
        trouble = source().trouble
        if trouble is not None:
            with above:
                show("banner", banner(trouble.reason, trouble.since))

    return drawn


def midnight() -> datetime:
    """When today began for the person who looks, on the hour."""
    minutes = st.context.timezone_offset or 0  # UTC minus local time
    local = datetime.now(UTC) - timedelta(minutes=minutes)
    start = local.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(minutes=minutes)
    return start.replace(minute=0)
