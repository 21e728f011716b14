"""How the benchmark speaks with a peer: jobs come in on standard input, results go out on the way.

Standard library alone: it runs in every peer's environment. A job is a line of JSON; its result is
a line on standard output that begins with `RESULT `, so that nothing a library prints is taken for
one. A paced job asks for the answers and for when each was known; any other asks for time alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

MARK = "RESULT "


@dataclass(frozen=True)
class Job:
    task: str
    window: int
    """Length of the login window; the other tasks have theirs in the pattern."""
    delay: int
    program: str
    """The task as a program of Whilst, for those that read one."""
    events: str
    """Folder of JSON Lines in the order of arrival, `0000.jsonl`, `0001.jsonl`, …"""
    log: str
    """The same events in one file, for those that would read several in any order."""
    scratch: str
    paced: bool
    cores: int
    batch: int
    """Files that a system with micro-batches reads in one."""


@dataclass(frozen=True)
class Answer:
    """An answer, and the arrivals between which the log was read when it came out."""

    key: str
    time: int
    first: int
    last: int


@dataclass(frozen=True)
class Arguments:
    way: str
    jobs: Iterator[Job]


def arguments(ways: tuple[str, ...] = ("",)) -> Arguments:
    parser = argparse.ArgumentParser()
    parser.add_argument("--way", choices=ways, default=ways[0])
    options = parser.parse_args()
    return Arguments(options.way, (Job(**json.loads(line)) for line in sys.stdin))


def reply(answers: list[Answer] | None, more: dict[str, Any]) -> None:
    rows = None if answers is None else [[a.key, a.time, a.first, a.last] for a in answers]
    print(MARK + json.dumps({"answers": rows, **more}), flush=True)


def files_of(folder: str) -> list[Path]:
    return sorted(Path(folder).glob("*.jsonl"))


def events_of(folder: str) -> Iterator[dict[str, Any]]:
    for file in files_of(folder):
        with file.open() as lines:
            yield from map(json.loads, lines)


def lines_of(folder: str) -> Iterator[tuple[int, list[str]]]:
    """The log by time point of arrival."""
    lines = (line for file in files_of(folder) for line in file.open())
    for tau, some in groupby(lines, key=lambda line: json.loads(line)["arrival"]):
        yield tau, list(some)


def span_of(files: list[Path]) -> tuple[int, int]:
    """The first and the last arrival in some files of a log."""
    arrivals = [json.loads(line)["arrival"] for file in files for line in file.open()]
    return min(arrivals), max(arrivals)


def known_at_the_end(
    job: Job, rows: Collection[tuple[str, int]], seconds: float
) -> tuple[list[Answer] | None, dict[str, Any]]:
    """The result of a system that reads the whole log before it says anything."""
    told = {"seconds": seconds, "count": len(rows), "lost": 0}
    if not job.paced:
        return None, told
    _, last = span_of(files_of(job.events))
    return [Answer(key, at, last, last) for key, at in rows], told
