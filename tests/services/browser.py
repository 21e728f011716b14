"""Debian's Chromium, driven by Playwright. `python -m tests.services.browser` gets it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from monitor.setup.doctor import chromium as executable

FLAGS = (
    "--no-sandbox",  # tests may run as root, where Chromium's sandbox refuses to
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    # A test's browser talks to the page under test and to nobody else.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    path = executable()
    if path is None:
        raise RuntimeError("no Chromium here: make test gets it, or: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def install() -> int:
    """Install Chromium where it is missing and this user may."""
    if executable():
        return 0
    become = [] if os.geteuid() == 0 else ["sudo", "-n"]
    apt = shutil.which("apt-get")
    if apt and (not become or shutil.which("sudo")):
        print("tests: installing Chromium from Debian's packages", flush=True)
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for step in (["update", "-qq"], ["install", "-qq", "-y", "chromium"]):
            subprocess.run(
                [*become, apt, *step],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
    if executable():
        return 0
    print(
        "tests: the browser tests need Chromium and this user cannot install it; "
        "as root: apt-get install chromium (or run the rest: make test ARGS=\"-m 'not browser'\")",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(install())
