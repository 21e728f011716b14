"""The body of an alert: `docs/reference/webhooks.md` and its schema say what is in it.

A body is made from its row in the outbox alone: it is the same in every attempt.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from monitor.alerts import templates
from monitor.alerts.declarations import Alert

VERSION = 1
"""Of the schema. Fields may be added under one number; none changes its meaning or goes."""

_TIME = re.compile(r"(\d+)\)$")
_STATUS = {"deadline": "pending", "test": "confirmed"}


@dataclass(frozen=True, slots=True)
class Message:
    """What a row of the outbox says."""

    webhook_id: str
    event: str
    program: str
    query: str
    tau: int
    said: dict[str, Any]
    created_at: datetime


def text(message: Message, alert: Alert) -> str:
    """The body in the format of the alert."""
    fields = standard(message)
    if alert.format == "slack":
        template = alert.template or templates.DEFAULT
        return _json({"text": templates.render(template, message.event, fields)})
    return _json(fields)


def standard(message: Message) -> dict[str, Any]:
    said = message.said
    return {
        "type": "test" if message.event == "test" else f"answer.{message.event}",
        "version": VERSION,
        "time": _instant(message.created_at),
        "program": message.program,
        "query": message.query,
        "answer": said["answer"],
        "status": _STATUS.get(message.event, message.event),
        "bindings": said["bindings"],
        "tau": message.tau,
        "unit_ms": said.get("unit_ms"),
        "since": said["since"],
        "decided_at": said["decided_at"],
        "deadline": said["deadline"],
        "reason": said["reason"],
        "evidence": [
            {"fact": fact, "time": _time(fact), "arrival": arrival}
            for fact, arrival in zip(said["evidence"], said["arrivals"], strict=True)
        ],
        "hypotheses": [
            {"atom": atom, "closes": closes}
            for atom, closes in zip(said["hypotheses"], said["closes"], strict=True)
        ],
        "conditions": said["conditions"],
    }


def test(webhook_id: str, at: datetime) -> Message:
    """For `whilst alerts test`: an answer that nobody gave, and whose type says so."""
    return Message(
        webhook_id,
        "test",
        "turbines",
        "Malf",
        2,
        {
            "answer": "Malf(wt2, 0)",
            "bindings": {"X": "wt2", "T": 0},
            "evidence": [f"Temp(wt2, high, {time})" for time in range(3)],
            "arrivals": [0, 2, 2],
            "hypotheses": [],
            "closes": [],
            "conditions": [],
            "deadline": None,
            "since": 0,
            "decided_at": 2,
            "reason": None,
            "unit_ms": 1000,
        },
        at,
    )


def _time(fact: str) -> int | None:
    """The time of a fact is its last argument."""
    found = _TIME.search(fact)
    return int(found[1]) if found else None


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
