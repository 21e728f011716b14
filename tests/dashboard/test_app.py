"""The script as Streamlit runs it, without a browser: what each page says in each state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import scope, sign_in
from storage.errors import StoreDown
from storage.store import Store
from tests.dashboard.loader import Loader
from tests.dashboard.serving import ROOT


@pytest.fixture
def reading(postgres: Store, run: Loader) -> Iterator[None]:
    scope.use(postgres.url("reader"))
    yield
    sign_in.require(None)


def screen(name: str, function: str = "draw") -> AppTest:
    script = f"from dashboard.screens import {name}\n{name}.{function}()\n"
    return AppTest.from_string(script, default_timeout=60)


def said(at: AppTest) -> str:
    """All that stands in what the pages build themselves."""

    def texts(node: Any) -> Iterator[str]:
        if isinstance(node, str):
            yield node
        else:
            for child in node[2:]:
                yield from texts(child)

    found = []
    for element in at.get("bidi_component"):
        for node in json.loads(element.proto.json)["nodes"]:
            found += list(texts(node))
    return " ".join(found)


def test_the_app_draws_now_first(reading: None) -> None:
    at = AppTest.from_file(str(ROOT / "dashboard" / "app.py"), default_timeout=60).run()
    assert not at.exception
    assert "Decide soonest" in said(at)


@pytest.mark.parametrize(
    ("name", "function", "title"),
    [
        ("now", "draw", "Now"),
        ("pending", "draw", "Pending"),
        ("decided", "confirmed", "Confirmed"),
        ("decided", "refuted", "Refuted"),
        ("rules", "draw", "Rules"),
        ("health", "draw", "Health"),
        ("answer", "draw", "No answer is chosen."),
    ],
)
def test_every_page_draws(reading: None, name: str, function: str, title: str) -> None:
    at = screen(name, function).run()
    assert not at.exception
    assert title in said(at)


@pytest.mark.parametrize("function", ["confirmed", "refuted"])
def test_a_span_that_cannot_be_read_shows_no_list(reading: None, function: str) -> None:
    at = screen("decided", function)
    at.query_params["from"] = "yesterday"
    at.run()
    assert not at.exception
    assert "write -1h, 14:30" in at.text[0].value
    assert said(at) == ""


def test_filters_that_match_nothing_say_what_to_do(reading: None) -> None:
    at = screen("pending")
    at.query_params["text"] = "no such answer"
    at.run()
    assert "No pending answer matches. Clear a filter to see more." in said(at)


def test_a_defect_is_called_one(reading: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("dashboard.queries.soonest", broken)
    at = screen("now").run()
    assert "That is a defect of the dashboard" in said(at)


def test_trouble_with_the_store_is_told_on_every_page(
    reading: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object) -> None:
        raise StoreDown("the store does not answer (nobody there): start it")

    monkeypatch.setattr("dashboard.queries.current_runs", down)
    for name, function in (("now", "draw"), ("pending", "draw"), ("decided", "refuted")):
        at = screen(name, function).run()
        assert not at.exception
        assert "nobody there" in said(at)


def test_who_has_not_signed_in_is_asked_to(
    reading: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    sign_in.require(sign_in.SignIn(tmp_path, ("*@example.org",)))
    user: Callable[[bool, dict[str, Any]], Any] = lambda known, claims: type(  # noqa: E731
        "User", (), {"is_logged_in": known, "get": staticmethod(claims.get)}
    )
    for known, claims, wanted in (
        (False, {}, "Sign in to see the dashboard."),
        (True, {"email": "eve@evil.net"}, "eve@evil.net may not see this dashboard."),
        (True, {"email": "ada@example.org"}, "Decide soonest"),
    ):
        monkeypatch.setattr("streamlit.user", user(known, claims))
        at = AppTest.from_file(str(ROOT / "dashboard" / "app.py"), default_timeout=60).run()
        assert not at.exception
        assert wanted in said(at)
        assert ("Decide soonest" in said(at)) == (wanted == "Decide soonest")
