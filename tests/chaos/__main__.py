"""`python -m tests.chaos --seed 7 --minutes 3`: break everything while clients work, and judge what came of it."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from contextlib import nullcontext
from pathlib import Path

from tests.chaos.checks import judge
from tests.chaos.kinds import HERE, SITE
from tests.chaos.plan import Plan, Stage, make_plan
from tests.chaos.report import summarise
from tests.chaos.slurm_site import SlurmSite, running_site
from tests.chaos.stage import sweep
from tests.chaos.storm import carry_out
from tests.postgres import programs

MINUTES = 3.0
SEEDS = 1_000_000


def read_options() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, help="of the plan; otherwise any")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="that faults are injected for")
    parser.add_argument("--parts", default="", help="only these, with commas between them")
    parser.add_argument(
        "--keep", type=Path, help="copy logs, database and directories of each part below this directory"
    )
    parser.add_argument("--no-site", action="store_true", help="leave the Slurm site out")
    parser.add_argument("--plan", action="store_true", help="print the plan, and do nothing")
    return parser.parse_args()


def choose_stages(parts: str, *, has_site: bool) -> tuple[Stage, ...]:
    """What can be done on this machine; what can't is said."""
    disk = frozenset[str]() if os.geteuid() else frozenset({"small-disk"})
    if not disk:
        print("note: without root no disk is filled")
    on_site = frozenset({SITE}) if has_site else frozenset({"own-clock"})
    stages = [Stage("sqlite", frozenset({HERE}) | disk | on_site, (HERE, HERE, SITE) if has_site else (HERE,))]
    if programs() is None:
        print("note: PostgreSQL is not installed: no part with two services")
    else:
        stages.append(Stage("postgres", frozenset({HERE, "postgres", "own-clock"}) | disk, services=2))
    wanted = [name for name in parts.split(",") if name]
    return tuple(stage for stage in stages if not wanted or stage.name in wanted)


def run(plan: Plan, cluster: SlurmSite | None, keep: Path | None) -> bool:
    """Carry out a plan; whether all was right."""
    is_right = True
    for part in plan.parts:
        evidence = carry_out(part, plan.seed, cluster if SITE in part.has else None, say, keep)
        wrong = judge(evidence)
        print(*summarise(part, evidence, wrong), sep="\n", flush=True)
        is_right = is_right and not wrong
    return is_right


def say(words: str) -> None:
    """Print it now."""
    print(words, flush=True)


def main() -> int:
    """The exit code."""
    options = read_options()
    seed = options.seed if options.seed is not None else random.randrange(SEEDS)
    seconds = options.minutes * 60
    if options.plan:
        stages = choose_stages(options.parts, has_site=not options.no_site)
        print(*make_plan(seed, seconds, stages).describe(), sep="\n")
        return 0
    say(f"chaos: seed {seed}, {options.minutes:g} minutes (again: make chaos SEED={seed} MINUTES={options.minutes:g})")
    sweep()
    began = time.monotonic()
    with nullcontext() if options.no_site else running_site() as cluster:
        plan = make_plan(seed, seconds, choose_stages(options.parts, has_site=cluster is not None))
        is_right = run(plan, cluster, options.keep)
    say(f"chaos: seed {seed} {'passed' if is_right else 'FAILED'} after {time.monotonic() - began:.0f} s")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
