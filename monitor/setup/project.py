"""`whilst init`: a small project to start from."""

from __future__ import annotations

import shutil
from pathlib import Path

from monitor.setup.places import SetupError

TEMPLATE = Path(__file__).with_name("template")


def make(folder: Path) -> list[Path]:
    """Copy the template into `folder`, which may exist if nothing is in it; what was made."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SetupError(f"{folder} is there already", "choose another name, or remove it first")
    try:
        shutil.copytree(TEMPLATE, folder, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        raise SetupError(f"{folder} cannot be made: {error}", "choose another place") from error
    return sorted(path for path in folder.rglob("*") if path.is_file())
