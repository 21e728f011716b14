"""Filters of the tables, kept in the URL so that a view can be shared."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import queries
from dashboard.queries import Filter, Run
from dashboard.scope import clock_of, midnight, source
from dashboard.times import Clock

__all__ = ["chosen", "chosen_with_span", "parse_bindings", "parse_instant"]

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


_AGO = re.compile(r"-(\d+)\s*(s|min|m|h|d|w)")
_SECONDS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")


def parse_instant(text: str, clock: Clock, zone: tzinfo, now: datetime) -> int:
    """A time point from what a person writes: `-1h`, `14:30`, a date, an instant, or τ.

    Times are those of the zone. Raises ValueError, saying what is wanted, for anything else.
    """
    text = text.strip().removeprefix("τ").strip()
    if text.isdecimal():
        return int(text)
    if clock.unit is None or not clock.by_calendar:
        raise ValueError("write a time point, as 120")
    local = now.astimezone(zone)
    if ago := _AGO.fullmatch(text):
        at = now - timedelta(seconds=int(ago[1]) * _SECONDS[ago[2]])
    elif hour := _CLOCK.fullmatch(text):
        try:
            at = local.replace(
                hour=int(hour[1]), minute=int(hour[2]), second=int(hour[3] or 0), microsecond=0
            )
        except ValueError:
            raise ValueError(f"{text} is no time of day") from None
    else:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError("write -1h, 14:30, 2026-01-31 14:30 or a time point") from None
        if at.tzinfo is None:
            at = at.replace(tzinfo=zone)
    return int(at.timestamp() * 1000 // clock.unit)


def _zone() -> tzinfo:
    return timezone(-timedelta(minutes=st.context.timezone_offset or 0))


def _field(name: str, key: str, hint: str | None) -> str:
    return (
        st.text_input(
            name, key=key, placeholder=hint, bind="query-params", on_change=_from_the_start
        )
        or ""
    ).strip()


def chosen(run: Run) -> Filter | None:
    """What the person asks for; None where it cannot be read, and the page says why."""
    return _chosen(run, st.columns([2, 3, 3]))


def chosen_with_span(run: Run) -> tuple[Filter, tuple[int | None, int | None]] | None:
    """What the person asks for, and from when to when it was decided."""
    *places, first, last = st.columns([2, 3, 3, 2, 2])
    wanted = _chosen(run, places)
    clock = clock_of(run)
    span: list[int | None] = []
    for place, name, hint in ((first, "From", "-1h, 14:30"), (last, "To", "now")):
        with place:
            text = _field(name, name.lower(), hint if clock.by_calendar else "time point")
            try:
                known = text not in ("", "now")
                span.append(
                    parse_instant(text, clock, _zone(), datetime.now(UTC)) if known else None
                )
            except ValueError as error:
                st.text(str(error))
                return None
    return None if wanted is None else (wanted, (span[0], span[1]))


def _chosen(run: Run, places: Sequence[DeltaGenerator]) -> Filter | None:
    names = [one.query for one in source().ask(queries.queries_now, run.id, midnight())]
    with places[0]:
        query = st.selectbox(
            "Query",
            names,
            index=None,
            placeholder="all",
            key="query",
            bind="query-params",
            on_change=_from_the_start,
        )
    with places[1]:
        bindings = _field("Bindings", "binding", "X = wt2")
        try:
            wanted = parse_bindings(bindings)
        except ValueError as error:
            st.text(str(error))
            return None
    with places[2]:
        text = _field("Text in the answer", "text", None)
    return Filter(query, json.dumps(wanted, sort_keys=True) if wanted else None, text or None)
