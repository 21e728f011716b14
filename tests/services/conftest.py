"""A folder that the user reaches as whom Postgres runs: root's own temporary ones are shut."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def reachable() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="whilst-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)
