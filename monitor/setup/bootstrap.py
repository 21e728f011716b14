"""`make setup`: from a fresh clone and a bare Python to a `.venv` with everything in it.

Run by the machine's Python, before anything is installed: the standard library alone. What was
done is remembered by content, so a second run asks the network for nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from contextlib import ExitStack
from pathlib import Path

from monitor.setup import jars, java
from monitor.setup.places import ROOT, SetupError, cache

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
CONSTRAINTS = ROOT / "constraints.txt"
STAMP = VENV / "whilst-setup"


def main() -> int:
    cache().mkdir(exist_ok=True)
    with (cache() / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two at once in one clone would mix up the installs
        try:
            return _set_up()
        except SetupError as error:
            print(f"setup: {error}", file=sys.stderr)
        except subprocess.CalledProcessError as error:
            print(f"setup: failed: {' '.join(map(str, error.cmd))}", file=sys.stderr)
    return 1


def _set_up() -> int:
    began = time.monotonic()
    extras = ["dev"] if java.find() else ["dev", "java"]
    wanted = fingerprint(extras)
    with ExitStack() as beside:
        if not _usable() or not STAMP.is_file() or STAMP.read_text() != wanted:
            _make_venv()
            _install(extras)
            STAMP.write_text(wanted)
            beside.enter_context(subprocess.Popen([PYTHON, "-m", "monitor.setup.warm"], cwd=ROOT))
        if any(jars.missing(jar_set) for jar_set in jars.SETS):
            _say("fetching the JVM parts (Kafka connector and broker, about 50 MB)")
            subprocess.run([PYTHON, "-m", "monitor.setup.jars"], cwd=ROOT, check=True)
    _say(f"ready after {time.monotonic() - began:.1f} s: .venv/bin/whilst")
    return 0


def fingerprint(extras: list[str]) -> str:
    """Changes when another install would come out; not when a linter's setting changes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    parts = (
        project["project"],
        project["build-system"],
        project["tool"]["setuptools"],
        CONSTRAINTS.read_text(),
        extras,
        sys.version_info[:2],
        str(ROOT),  # scripts in a .venv name its place: a moved clone is set up again
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _usable() -> bool:
    return _runs([PYTHON, "-c", ""])


def _make_venv() -> None:
    if _usable():
        return
    _say(f"making .venv with {sys.executable}")
    shutil.rmtree(VENV, ignore_errors=True)
    if _runs([sys.executable, "-c", "import ensurepip, venv"]):
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    elif uv := _uv_on_path():
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, VENV], check=True)
    else:
        raise SetupError("this Python has no venv", "on Debian: apt-get install python3-venv")


def _install(extras: list[str]) -> None:
    _say("installing the packages of constraints.txt")
    what: list[str | Path] = ["-c", CONSTRAINTS, "-e", f"{ROOT}[{','.join(extras)}]"]
    if uv := _uv_on_path() or _uv_in_venv():
        command = [uv, "pip", "install", "--quiet", "--python", PYTHON, *what]
        if subprocess.run(command, cwd=ROOT).returncode == 0:
            return
        _say("uv could not; trying pip")
    subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", *what], cwd=ROOT, check=True)


def _uv_on_path() -> str | None:
    uv = shutil.which("uv")  # may be a shim with nothing behind it
    return uv if uv and _runs([uv, "--version"]) else None


def _uv_in_venv() -> str | None:
    """uv installs three times as fast as pip, so pip installs uv and no more."""
    uv = VENV / "bin" / "uv"
    if not uv.is_file():
        _runs([PYTHON, "-m", "pip", "install", "--quiet", "-c", CONSTRAINTS, "uv"])
    return str(uv) if uv.is_file() else None


def _runs(command: list[str | Path]) -> bool:
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def _say(text: str) -> None:
    print(f"setup: {text}", flush=True)


if __name__ == "__main__":
    os.environ.pop("VIRTUAL_ENV", None)  # an activated one is not ours to install into
    sys.exit(main())
