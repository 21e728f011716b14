"""Where an event stands: the number of a line in its file, looked up for the few that need it.

Spark does not say which line of a file a row was. So the file is read once more, up to the end of
the part that the task had, and the lines that are wanted are counted.
"""

from __future__ import annotations

import gzip
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from monitor.sources import is_csv


def numbered(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events with `place` filled in: `FILE:LINE` for those that came from files."""
    wanted: dict[tuple[str, int, int], list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["place"] is None:
            wanted[event["source"], event["start"], event["length"]].append(event)
    for (source, start, length), waiting in wanted.items():
        path = _local(source)
        places = _lines(path, start, length, waiting) if path else {}
        for event in waiting:
            found = places.get(bytes(event["value"]))
            event["source"] = str(path or source)
            event["place"] = str(found.popleft()) if found else f"after byte {start}"
    return events


def _local(source: str) -> Path | None:
    parts = urlsplit(source)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def _lines(
    path: Path, start: int, length: int, waiting: Iterable[dict[str, Any]]
) -> dict[bytes, deque[int]]:
    texts = {bytes(event["value"]) for event in waiting}
    found: dict[bytes, deque[int]] = defaultdict(deque)
    whole = path.suffix == ".gz"
    rows = _numbered_lines(path)
    try:
        if is_csv(path.name):
            next((row for row in rows if row[2].strip()), None)  # the header is no event
        for number, at, line in rows:
            if not whole and at > start + length:
                break  # a part has the lines that begin in it, and one that begins where it ends
            if (whole or start == 0 or at > start) and line in texts:
                found[line].append(number)
    except OSError:
        pass  # the file is gone: its events still say which file it was
    return found


def _numbered_lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    at = 0
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            yield number, at, line.removesuffix(b"\n")
            at += len(line)
