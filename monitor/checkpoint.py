"""The folder of a run: Spark's checkpoint, the clock's ticks, and what the run is a run of.

PROGRAM-HASH/N/run.json     the program and what else must not change under a checkpoint
               spark/       offsets, commits and state, all Spark's
               clock/       the stream that tells Spark which blocks have closed
               complete/    for each batch: what was complete before it
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resolution.errors import WhilstError
from resolution.premises import PremiseSet
from resolution.program import Program

_KEPT = 100  # batches; Spark asks again for the last one only


class ProgramChanged(WhilstError):
    """A checkpoint of another program, and how to go on."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    folder: Path
    text: str
    """The text of the program as it was when the run began."""

    @property
    def spark(self) -> Path:
        return self.folder / "spark"

    @property
    def clock(self) -> Path:
        return self.folder / "clock"

    @property
    def begun(self) -> bool:
        return (self.spark / "offsets").exists()

    @property
    def last_planned(self) -> int:
        """The last batch whose offsets are written down; -1 where there is none."""
        planned = (self.spark / "offsets").glob("[0-9]*")
        return max((int(p.name) for p in planned if p.name.isdigit()), default=-1)

    def complete_before(self, batch: int, complete: int | None) -> int | None:
        """What was complete before a batch: as told at its first attempt, and ever after."""
        folder = self.folder / "complete"
        path = folder / str(batch)
        with contextlib.suppress(FileNotFoundError):
            return json.loads(path.read_text())  # type: ignore[no-any-return]
        folder.mkdir(exist_ok=True)
        _write(path, json.dumps(complete))
        (folder / str(batch - _KEPT)).unlink(missing_ok=True)
        return complete


def open_checkpoint(
    home: Path, name: str, program: Program, sets: list[tuple[PremiseSet, ...]],
    settings: dict[str, Any], *, fresh: bool = False,
) -> Checkpoint:  # fmt: skip
    """The checkpoint of a program on these settings (sources, until, …), made where there is none.

    Raises ProgramChanged where there is one of a program that means something else.
    """
    place = home / "checkpoints" / f"{name}-{_digest(settings)[:10]}"
    there = sorted((p for p in place.glob("*") if p.name.isdigit()), key=lambda p: int(p.name))
    meaning = _meaning(program, sets)
    if there and not fresh:
        kept = json.loads((there[-1] / "run.json").read_text())
        if kept["meaning"] != meaning:
            raise ProgramChanged(
                f"{name} has changed since its run began (checkpoint {there[-1]}): "
                "start anew with --fresh, or go on with the program as it was"
            )
        return Checkpoint(there[-1], kept["text"])
    number = int(there[-1].name) + 1 if there else 1
    folder = place / str(number)
    (folder / "clock").mkdir(parents=True)
    text = program.source.text
    _write(folder / "run.json", json.dumps(
        {"program": name, "settings": settings, "meaning": meaning, "text": text}, indent=2
    ))  # fmt: skip
    for old in there:
        shutil.rmtree(old)
    return Checkpoint(folder, text)


def _meaning(program: Program, sets: list[tuple[PremiseSet, ...]]) -> str:
    """A digest that is the same for programs that give the same answers to the same events."""
    return _digest(
        {
            "unit": program.unit,
            "streams": {
                name: [(f.name, f.type) for f in fields] for name, fields in program.streams.items()
            },
            "delays": sorted(
                (name, repr(pattern), bound)
                for name, bounds in program.delays.bounds.items()
                for pattern, bound in bounds.items()
            ),
            "premises": [[str(premises) for premises in query] for query in sets],
        }
    )


def _digest(what: object) -> str:
    text = json.dumps(what, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _write(path: Path, text: str) -> None:
    """All of it or nothing."""
    beside = path.with_name(f".{path.name}")
    beside.write_text(text)
    os.replace(beside, path)
