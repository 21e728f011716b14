"""`python -m tests.chaos.fuzz --seconds 60`: each target under atheris, guided by coverage.

What makes a target fail is written beside its corpus, and belongs into `test_targets.py`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("program", "fact", "configuration", "address")
_MOST = 4096  # bytes


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("targets", nargs="*", default=NAMES)
    options.add_argument("--seconds", type=int, default=60, help="for each target")
    options.add_argument("--out", type=Path, default=Path("build/fuzz"))
    options.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.alone:
        return _fuzz(given.targets[0], given.seconds, given.out / given.targets[0])
    failed = []
    for name in given.targets or NAMES:
        # A process each: a fuzzer ends its process.
        command = [sys.executable, "-m", "tests.chaos.fuzz", name, "--alone"]
        command += ["--seconds", str(given.seconds), "--out", str(given.out)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")
        runs = [line for line in done.stderr.splitlines() if line.startswith("Done ")]
        print(f"{name}: {runs[-1] if runs else 'stopped'}", flush=True)
        if done.returncode != 0:
            failed.append(name)
            told = [line for line in done.stderr.splitlines() if not line.startswith("INFO:")]
            print(f"{done.stdout}\n" + "\n".join(told[-20:]), file=sys.stderr)
    return 1 if failed else 0


def _fuzz(name: str, seconds: int, folder: Path) -> int:
    import atheris

    with atheris.instrument_imports(
        include=["resolution", "monitor", "storage"], enable_loader_override=False
    ):
        from tests.chaos.targets import TARGETS

    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(_seeds(name)):
        (corpus / f"seed-{number}").write_bytes(seed)
    arguments = [
        f"-max_total_time={seconds}",
        f"-max_len={_MOST}",
        "-timeout=20",
        "-print_final_stats=0",
        "-verbosity=1",
        f"-artifact_prefix={folder}/",
        str(corpus),
    ]
    atheris.Setup([sys.argv[0], *arguments], TARGETS[name])
    atheris.Fuzz()
    return 0


def _seeds(name: str) -> list[bytes]:
    golden = ROOT / "tests" / "golden"
    match name:
        case "program":
            return [path.read_bytes() for path in sorted(golden.glob("*/program.rules"))]
        case "fact":
            from tests.chaos.plan import POISON

            events = sorted(golden.glob("*/facts.jsonl"))
            lines = [line for path in events for line in path.read_bytes().splitlines()[:3]]
            named = b'{"fact": "Temp", "device": "a", "celsius": 81.5, "time": "2026-01-01T00:00Z"}'
            return [*lines, named, *(body for body in POISON if len(body) < _MOST)]
        case "configuration":
            template = ROOT / "monitor" / "setup" / "template" / "whilst.toml"
            alert = b'[[alert]]\nname = "a"\nurl = "https://b.c/d"\nsecret_env = "S"\n'
            more = b'events = ["confirmed", "deadline in less than 10m"]\nfilter = {X = 1.5}\n'
            return [template.read_bytes(), alert, alert + more, b"500ms", b"2026-01-01T00:00:00Z"]
        case _:
            hosts = (
                b"a.b/c?d#e",
                b"[::1]:80/x",
                b"u:p@h:5432/db?sslmode=require",
                b"1.2.3.4",
                b"x%",
            )
            return list(hosts)


if __name__ == "__main__":
    sys.exit(main())
