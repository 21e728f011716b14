"""The report on benchmarks: what was measured is kept as JSON, and told in Markdown.

`keep` adds a run to the history; `build` writes the page and its plots from the newest run alone
and the one before it, so that a page can always be made again from what is kept.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from monitor.bench.report_page import page, plots
from monitor.bench.report_worse import Kept
from monitor.setup import java
from monitor.setup.places import ROOT, SetupError

__all__ = ["build", "keep", "machine", "write"]


def write(
    folder: Path,
    figures: list[dict[str, Any]],
    scale: float,
    began: datetime,
    load: float | None = None,
) -> Path:
    """Keep a run and tell of it. Returns the page. The load is that before it began."""
    keep(folder, figures, scale, began, load)
    return build(folder)


def keep(
    folder: Path,
    figures: list[dict[str, Any]],
    scale: float,
    began: datetime,
    load: float | None = None,
) -> Path:
    history = folder / "history"
    history.mkdir(parents=True, exist_ok=True)
    path = history / f"{began:%Y-%m-%dT%H%M%SZ}.json"
    run = {
        "began": began.isoformat(timespec="seconds"),
        "minutes": round((datetime.now(UTC) - began).total_seconds() / 60, 1),
        "scale": scale,
        "commit": _commit(),
        "load": load,
        "machine": machine(),
    }
    lines = ",\n".join(f"  {json.dumps(figure, ensure_ascii=False)}" for figure in figures)
    head = json.dumps(run, indent=1, ensure_ascii=False).removesuffix("\n}")
    path.write_text(f'{head},\n "figures": [\n{lines}\n ]\n}}\n')
    return path


def build(folder: Path) -> Path:
    """The page and its plots, from the history in a folder."""
    runs = [Kept.of(json.loads(p.read_text())) for p in sorted((folder / "history").glob("*.json"))]
    newest = runs[-1]
    alike = [run for run in runs[:-1] if run.like(newest)]
    for old in folder.glob("*.svg"):
        old.unlink()
    drawn = plots(newest)
    for name, svg in drawn.items():
        (folder / name).write_text(svg)
    path = folder / "README.md"
    path.write_text(page(newest, alike[-1] if alike else None, list(drawn)))
    return path


def machine() -> dict[str, Any]:
    """What the figures were taken on. No name of the machine: it says nothing to others."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory GB": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": _java(),
        **{name: _version(name) for name in ("pyspark", "pyarrow", "numpy", "numba", "duckdb")},
    }


def _processor() -> str:
    try:
        found = re.search(r"(?m)^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def _memory() -> float:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def _java() -> int | str:
    try:
        return java.require().version
    except SetupError:
        return "none"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def _commit() -> str:
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
        )
    except FileNotFoundError:
        return "unknown"
    return done.stdout.strip() or "unknown"
