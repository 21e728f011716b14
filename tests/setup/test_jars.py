"""The JVM parts: what is named, what is missing, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.setup import jars
from monitor.setup.places import SetupError


def test_the_manifest_names_each_jar_once_with_a_whole_checksum() -> None:
    for jar_set in jars.SETS:
        named = jars.manifest(jar_set)
        assert len({jar.file for jar in named}) == len(named) > 0
        assert all(len(bytes.fromhex(jar.sha256)) == 32 for jar in named)


def test_the_connector_is_that_of_the_pyspark_installed() -> None:
    from importlib.metadata import version

    connector = next(j for j in jars.manifest("spark") if j.artifact.startswith("spark-sql-kafka"))
    assert connector.version == version("pyspark")


def test_setup_left_all_jars() -> None:
    assert all(path.is_file() for path in jars.spark_jars() + jars.kafka_jars())


def test_a_missing_jar_is_named_with_the_command_that_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHILST_JARS", str(tmp_path))
    for jar in jars.manifest("spark")[1:]:
        jars.folder("spark").mkdir(exist_ok=True)
        (jars.folder("spark") / jar.file).touch()
    with pytest.raises(SetupError, match=r"commons-pool2.*setup"):
        jars.spark_jars()


def test_a_jar_with_another_checksum_is_not_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHILST_JARS", str(tmp_path))

    def other_files(absent: list[jars.Jar], work: Path) -> Path:
        for jar in absent:
            (work / jar.file).write_bytes(b"not the jar")
        return work

    monkeypatch.setattr(jars, "_retrieve", other_files)
    with pytest.raises(SetupError, match="SHA-256"):
        jars.fetch("spark")
    assert len(jars.missing("spark")) == len(jars.manifest("spark"))
