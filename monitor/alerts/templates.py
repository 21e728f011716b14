"""Text for people in chat tools: `{answer} confirmed at {tau}`, each name a field of the alert."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from monitor.alerts.errors import AlertError

DEFAULT = "*{answer}* {event} at {tau} ({program})\n{because}"

_MARK = re.compile(r"\{([^{}]*)\}")
_VARIABLE = re.compile(r"bindings\.\w+")
_FIELDS = (
    *("event", "program", "query", "answer", "status", "tau", "time", "since", "decided_at"),
    *("deadline", "reason", "evidence", "hypotheses", "conditions", "because"),
)


def check(template: str) -> None:
    """Refuse a template that names what no alert has."""
    for name in _MARK.findall(template):
        if name not in _FIELDS and not _VARIABLE.fullmatch(name):
            raise AlertError(
                f"the template names {{{name}}}; there are {', '.join(_FIELDS)} "
                "and bindings.X for a variable X"
            )


def render(template: str, event: str, body: Mapping[str, Any]) -> str:
    """The template with the fields of a body filled in, escaped for Slack."""

    def filled(mark: re.Match[str]) -> str:
        return _escaped(_field(mark[1], event, body))

    return _MARK.sub(filled, template).strip()


def _field(name: str, event: str, body: Mapping[str, Any]) -> str:
    match name:
        case "event":
            return {"deadline": "is about to be refuted"}.get(event, event)
        case "evidence":
            return ", ".join(one["fact"] for one in body["evidence"])
        case "hypotheses":
            return ", ".join(one["atom"] for one in body["hypotheses"])
        case "conditions":
            return ", ".join(body["conditions"])
        case "because":
            return _because(body)
    value = body["bindings"].get(name[9:]) if name.startswith("bindings.") else body[name]
    return "" if value is None else str(value)


def _because(body: Mapping[str, Any]) -> str:
    match body["status"]:
        case "refuted":
            return f"did not arrive in time: {body['reason']}" if body["reason"] else ""
        case "pending":
            until = "" if body["deadline"] is None else f" before {body['deadline']}"
            return f"waits for {_field('hypotheses', '', body)}{until}"
    return f"evidence: {_field('evidence', '', body)}"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
