"""The body that is documented is the body that is sent."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest

from monitor.alerts import body
from monitor.alerts.declarations import EVENTS
from monitor.alerts.templates import render
from storage.store import Store
from tests.alerts.conftest import alert
from tests.alerts.test_delivery import confirmed, delivering, pending, register, statuses, until
from tests.services.receiver import Receiver
from tests.storage.changes import Running

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
SCHEMA = json.loads((REFERENCE / "alert.schema.json").read_text())
VALID = jsonschema.Draft202012Validator(
    SCHEMA, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
)


def strict(value: dict) -> None:
    """Valid, and without a field that the schema does not describe."""
    VALID.validate(value)
    assert set(value) == set(SCHEMA["properties"])


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["version"]["const"] == body.VERSION
    types = {f"answer.{event}" for event in EVENTS} | {"test"}
    assert set(SCHEMA["properties"]["type"]["enum"]) == types


def test_the_example_in_the_reference_is_what_is_sent() -> None:
    text = (REFERENCE / "webhooks.md").read_text()
    found = re.search(r"```http.*?\n\n(\{.*?\n\})\n```", text, re.S)
    assert found is not None
    example = json.loads(found[1])
    strict(example)
    at = datetime(2026, 1, 1, 0, 0, 2, 125_000, tzinfo=UTC)
    made = json.loads(body.text(body.test("msg_1", at), alert("https://e.org")))
    assert example == made | {"type": "answer.confirmed"}
    assert list(example) == list(made)


def test_every_event_of_the_store_fits_the_schema(
    store: Store, running: Running, receiver: Receiver
) -> None:
    register(store, alert(receiver.url, events=EVENTS, within=2))
    with delivering(store):
        running.apply(confirmed("a"), pending("b", 1, 5), tau=2)
        running.complete(4)
        running.complete(6)
        receiver.wait_for(4)
        until(lambda: statuses(store) == {"delivered": 4})
    told = [json.loads(request.body) for request in receiver.requests]
    for one in told:
        strict(one)
    assert {one["type"] for one in told} == {f"answer.{event}" for event in EVENTS}


def test_every_setting_and_field_is_in_the_reference() -> None:
    from monitor.alerts.declarations import _KEYS
    from monitor.alerts.templates import _FIELDS

    text = (REFERENCE / "webhooks.md").read_text()
    missing = [key for key in _KEYS if f"`{key}`" not in text]
    missing += [field for field in _FIELDS if f"`{{{field}}}`" not in text]
    assert missing == []


@pytest.mark.parametrize(
    ("event", "changes", "said"),
    [
        ("confirmed", {}, "evidence: Temp(wt2, high, 0)"),
        ("refuted", {"reason": "T(3)"}, "did not arrive in time: T(3)"),
        ("refuted", {"reason": None}, ""),
        (
            "pending",
            {"hypotheses": ["T(X)"], "closes": [9], "deadline": 9},
            "waits for T(X) before 9",
        ),
        ("pending", {"hypotheses": ["T(X)"], "closes": [None]}, "waits for T(X)"),
    ],
)
def test_why_in_a_line(event: str, changes: dict, said: str) -> None:
    from dataclasses import replace

    made = body.test("msg_1", datetime.now(UTC))
    made = replace(
        made,
        event=event,
        said={**made.said, "evidence": ["Temp(wt2, high, 0)"], "arrivals": [0], **changes},
    )
    assert render("{because}", event, body.standard(made)) == said
