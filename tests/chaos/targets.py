"""What strangers may hand to Whilst, as functions of bytes: each refuses in words, or takes it.

`make fuzz` looks for bytes at which one of them fails; those it found are cases of `test_targets`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from monitor.alerts import addresses
from monitor.alerts.declarations import checked_url, declared
from monitor.alerts.errors import AlertError, Forbidden
from monitor.alerts.secrets import shown_url
from monitor.config import ConfigError, milliseconds, pairs, point
from monitor.doubt import fact_with_arrival
from monitor.sources import SourceError, parse_source
from resolution.errors import WhilstError
from resolution.facts import RejectedEvent, read_event
from resolution.parser import decode, parse_partial
from resolution.printer import format
from resolution.program import load
from storage.errors import StoreError
from storage.store import _external

_PROGRAM = load(
    """
    unit 1s.
    stream Temp(device: string, celsius: float) delay 1.
    stream Mode(device, level) delay 2.
    stream Count(n: int) delay 0.
    stream Alarm() delay 0.
    Hot(X, T) <- Temp(X, C, T), Mode(X, high, T), C > 80.
    query Hot(X, T).
    """
)


def program(data: bytes) -> None:
    """A program has mistakes that are told, or one layout that says the same."""
    try:
        text = decode(data)
    except WhilstError:
        return
    _, mistakes = parse_partial(text)
    if mistakes:
        return
    laid_out = format(text)
    assert format(laid_out) == laid_out
    with suppress(WhilstError):
        load(text)


def fact(data: bytes) -> None:
    """An event is rejected with a reason, or is a fact that can be told."""
    try:
        line = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return
    try:
        read = read_event(line, _PROGRAM)
    except RejectedEvent as rejected:
        reason = str(rejected)
    else:
        assert 0 <= read.time <= read.arrival
        reason = str(read.atom)
    assert reason
    reason.encode()
    with suppress(RejectedEvent):
        fact_with_arrival(line, _PROGRAM, "seen", None)
    with suppress(RejectedEvent):
        fact_with_arrival(line, _PROGRAM, "arrival", 1_700_000_000)


def configuration(data: bytes) -> None:
    """A configuration is refused with the place, or understood."""
    text = data.decode(errors="replace")
    for reader in (milliseconds, lambda t, what: point(t, 1000, what)):
        with suppress(ConfigError):
            reader(text, "--trigger")
    with suppress(ConfigError):
        pairs([text], "--spark")
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return
    with suppress(AlertError):
        declared(table, Path("whilst.toml"))


def address(data: bytes) -> None:
    """The URLs of webhooks, sources and stores are refused, or shown without what is secret."""
    text = data.decode(errors="replace")
    with suppress(SourceError):
        parse_source("kafka://" + text)
    with suppress(StoreError):
        _external("postgresql://" + text)
    try:
        parts = checked_url("https://" + text)
    except AlertError as refused:
        if len(text) >= 8 and text in str(refused):
            raise AssertionError("the URL stands in the message") from refused
        return
    with suppress(Forbidden):
        addresses.check_host(parts.hostname or "", frozenset())
    host = parts.netloc.rpartition("@")[2]
    assert shown_url("https://" + text) in (f"https://{host}", f"https://{host}/…")


TARGETS: dict[str, Callable[[bytes], None]] = {
    "program": program,
    "fact": fact,
    "configuration": configuration,
    "address": address,
}
