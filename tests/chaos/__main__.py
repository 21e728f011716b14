"""`python -m tests.chaos --rounds 25 --seed 1`: rounds one after another, and a table of them."""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from tests.chaos.plan import Plan
from tests.chaos.round import Outcome, play, terminate_quietly


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=25)
    options.add_argument("--seed", type=int, default=1, help="of the first; the next have the next")
    options.add_argument("--seconds", type=float, default=25.0, help="of each stream")
    options.add_argument("--events", type=int, default=400)
    options.add_argument("--faults", type=int, default=5)
    options.add_argument("--keep", action="store_true", help="keep the folders of good rounds too")
    given = options.parse_args()
    terminate_quietly()
    outcomes: list[Outcome] = []
    try:
        for number in range(given.seed, given.seed + given.rounds):
            print(f"round {len(outcomes) + 1} of {given.rounds}, seed {number}", flush=True)
            plan = Plan.of(number, given.seconds, given.events, given.faults)
            outcomes.append(_played(plan, given.keep))
    finally:  # also of the rounds before it was stopped
        _summary(outcomes)
    return 0 if all(outcome.fine for outcome in outcomes) else 1


def _played(plan: Plan, keep: bool) -> Outcome:
    folder = Path(tempfile.mkdtemp(prefix=f"whilst-round-{plan.seed}-"))
    outcome = play(plan, folder, lambda text: print(text, flush=True))
    if outcome.fine and not keep:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"  kept in {folder}", flush=True)
    for wrong in outcome.found.wrong:
        print(f"  WRONG: {wrong}", flush=True)
    after = ", ".join(f"{kind} {seconds:.0f} s" for kind, seconds in outcome.recovered.items())
    print(f"  {'right' if outcome.fine else 'WRONG'}; all was read again after {after}", flush=True)
    return outcome


def _summary(outcomes: list[Outcome]) -> None:
    print()
    print("seed  took  log  facts late rej  confirmed refuted pending  alerts again  starts  came")
    for outcome in outcomes:
        found, answers = outcome.found, outcome.found.answers
        print(
            f"{outcome.plan.seed:4}  {outcome.seconds:3.0f}s  {found.records:4} {found.facts:4} "
            f"{found.late:4} {found.rejected:4}  {answers['confirmed']:9} {answers['refuted']:7} "
            f"{answers['pending']:7}  {found.alerts:6} {found.repeats:5}  {outcome.starts:6}  "
            f"{'right' if outcome.fine else 'WRONG'}"
        )
    recovered: dict[str, list[float]] = defaultdict(list)
    for outcome in outcomes:
        for kind, seconds in outcome.recovered.items():
            recovered[kind].append(seconds)
    print("\nfault                     times  seconds until all was read again: median, longest")
    for kind, seconds in sorted(recovered.items()):
        print(f"{kind:24}  {len(seconds):5}  {statistics.median(seconds):6.1f} {max(seconds):6.1f}")
    right = sum(outcome.fine for outcome in outcomes)
    print(f"\n{right} of {len(outcomes)} rounds right")


if __name__ == "__main__":
    sys.exit(main())
