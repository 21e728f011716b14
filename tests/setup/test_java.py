"""Which Java is taken, and the wrapper that Spark is given for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from monitor.setup import java
from monitor.setup.places import SetupError


def fake(home: Path, version: str) -> Path:
    """A `java` that tells its version, and otherwise prints its arguments a line each."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(
        '#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "'
        + version
        + "\"' >&2; else printf '%s\\n' \"$@\"; fi\n"
    )
    command.chmod(0o755)
    return home


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with no Java at all, and a cache in a path with blanks."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java.shutil, "which", lambda _: None)
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(java, "cache", lambda: tmp_path / "a cache")
    return tmp_path


def test_java_home_wins_where_spark_accepts_it(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake(bare / "named", "21.0.8")))
    monkeypatch.setattr(
        java.shutil, "which", lambda _: str(fake(bare / "p", "17.0.1") / "bin/java")
    )
    assert java.find() == java.Java(bare / "named", 21, "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8.0_412", "11.0.2", "25.0.1"])
def test_a_java_that_spark_refuses_is_passed_over(
    bare: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake(bare / "named", version)))
    monkeypatch.setattr(java.shutil, "which", lambda _: str(fake(bare / "p", "17") / "bin/java"))
    assert java.find() == java.Java(bare / "p", 17, "PATH")


def test_without_any_java_the_error_says_how_to_get_one(bare: Path) -> None:
    with pytest.raises(SetupError, match=r"found: none.*whilst\[java\]"):
        java.require()


def test_spark_gets_a_java_that_drops_the_vector_module_alone(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake(bare / "it's a java", "17.0.15")))
    home = java.home_for_spark()
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "$x"]
    told = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True)
    assert told.stdout.split("\n") == ["-Xmx1g", "a b", "", "$x", ""]
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.home_for_spark() == home
