"""What executors on other machines need of Python, as archives that Spark unpacks beside them.

Two: Whilst's own code, which is small and may have changed since the last run, and the packages it
imports there, which are large and change only with their versions.
"""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from monitor.setup.places import ROOT, SetupError, cache

CODE, PACKAGES = "whilst-code", "whilst-packages"
"""The folders they are unpacked to, in the working folder of an executor."""

_OWN = ("resolution", "storage", "monitor")
_IMPORTED = ("lark", "numba", "numpy", "pandas", "psycopg", "psycopg-binary", "pyarrow")
"""Distributions that the code on executors imports, and pyspark for it."""


def archives() -> list[str]:
    """Both, as `spark.archives` wants them."""
    return [f"{_code().as_uri()}#{CODE}", f"{_packages().as_uri()}#{PACKAGES}"]


def _code() -> Path:
    files = sorted(
        path
        for name in _OWN
        for path in (ROOT / name).rglob("*")
        if path.suffix in (".py", ".lark", ".properties")
    )
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.read_bytes())
    return _made("code", digest.hexdigest(), ((p, str(p.relative_to(ROOT))) for p in files))


def _packages() -> Path:
    found = {name: metadata.distribution(name) for name in sorted(_closure(_IMPORTED))}
    versions = repr([(name, one.version) for name, one in found.items()])
    digest = hashlib.sha256(versions.encode()).hexdigest()
    return _made("packages", digest, (f for one in found.values() for f in _files(one)))


def _closure(names: Iterable[str]) -> set[str]:
    """The distributions, and those they cannot do without."""
    found: set[str] = set()
    todo = list(names)
    while todo:
        name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
        if name in found:
            continue
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            if name in _IMPORTED:
                raise SetupError(
                    f"executors need the package {name}, and it is not here", f"pip install {name}"
                ) from None
            continue  # for another platform
        found.add(name)
        for text in requires:
            if "extra ==" not in text and (wanted := re.match(r"[\w.-]+", text)):
                todo.append(wanted[0])
    return found


def _files(distribution: metadata.Distribution) -> Iterator[tuple[Path, str]]:
    for file in distribution.files or ():
        name = str(file)
        if name.startswith("..") or "__pycache__" in name or "/tests/" in name:
            continue
        yield Path(str(distribution.locate_file(file))), name


def _made(name: str, digest: str, files: Iterable[tuple[Path, str]]) -> Path:
    """The archive of that digest. Others stay: a run that goes on may hand them out still."""
    folder = cache() / "cluster"
    path = folder / f"{name}-{digest[:16]}.zip"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{path.name}.{os.getpid()}"
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file, inside in files:
            if file.is_file():
                archive.write(file, inside)
    unfinished.rename(path)
    return path
