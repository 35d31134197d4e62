"""`python -m tools.differential`: compares the agent with the kubelet's own packages, on random histories.

Exit codes: 0 no difference, 1 a difference (the smallest history is shown) or a planted error that was not found, 2 for
usage, when the driver cannot be built, or without a network of its own where there has to be one: in CI, and as root.
"""

import argparse
import contextlib
import json
import math
import multiprocessing
import os
import secrets
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from tools.differential import coverage, gate, planted
from tools.differential.build import driver
from tools.differential.build_1_16 import driver_1_16
from tools.differential.compare import (
    Difference,
    Tally,
    answers,
    batches_of,
    compare,
    differs_again,
    shortened,
    too_many,
)
from tools.differential.errors import ERRORS
from tools.differential.fixed import CASES, write_answers
from tools.differential.fixes import FIXES, Fix, shown
from tools.differential.kubelet import COVERAGE, GATES, Kubelet, is_old
from tools.differential.loopback import leave_network
from tools.differential.planted_error import Planted
from tools.differential.target import Target
from tools.differential.targets import TARGETS
from tools.kit.ability import must_run
from tools.kit.commands import BuildError
from tools.kit.endings import end_with_parent
from tools.testbed.shared.binaries import BinariesMissing

HISTORIES = 20_000
PARTS = 4
"""A target is compared in so many parts, so that the last one to end does not keep the other processors waiting."""
TURN = 5_000
"""Where time ends a run, each target plays so many at a time, in turns: so when it is over all have about as many,
those too whose histories take long."""
SHOWN = 3
"""So many fixed histories of a target that differ are shown."""
RAREST = 3
"""So many planted errors are named with how long it took to find them: one that gets rarer is to be seen in time."""


def _end(_number: int, _frame: object) -> None:
    """As by an error, so that what is held is let go: copies of the agent in temporary folders, processes."""
    planted.over.set()
    raise SystemExit(128 + signal.SIGTERM)


@contextlib.contextmanager
def _comparing(count: int | None) -> Iterator[ProcessPoolExecutor]:
    """Processes that compare. An error ends them: they may wait for a network for minutes, and the pool for them."""
    with ProcessPoolExecutor(count, initializer=_begin_to_compare) as pool:
        try:
            yield pool
        except BaseException:
            for process in multiprocessing.active_children():
                process.kill()
            raise


def _begin_to_compare() -> None:
    """In a process that compares: told to end, it ends, and does not take the next job."""
    end_with_parent()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _options() -> argparse.Namespace:
    """The command line; `seed` is set in any case."""
    parser = argparse.ArgumentParser(prog="python -m tools.differential", description=__doc__)
    parser.add_argument("--histories", type=int, default=HISTORIES, help=f"of each target (default {HISTORIES})")
    parser.add_argument(
        "--gate", action="store_true", help="few histories, a fixed seed, and one planted error of each target"
    )
    parser.add_argument("--minutes", type=float, help="ends after so long, with as many of each target")
    parser.add_argument("--seed", type=int, help="repeats a run (default: a new one, which is printed)")
    parser.add_argument("--only", choices=[t.name for t in TARGETS], action="append", help="this target")
    parser.add_argument("--planted", action="store_true", help="then look whether planted errors are found")
    parser.add_argument(
        "--fixes", action="store_true", help="then look whether named fixes, switched on, make differences"
    )
    parser.add_argument(
        "--record", action="store_true", help="only write down what the kubelet answers to the fixed histories"
    )
    parser.add_argument("--coverage", type=Path, help="then tell what of the kubelet's code was not reached; kept here")
    parser.add_argument("--parts", type=int, default=PARTS, help="how many processes may share a target")
    options = parser.parse_args()
    if options.seed is None:
        given = os.environ.get("READYGATE_SEED")
        options.seed = gate.SEED if options.gate else int(given or secrets.randbelow(2**32))
    return options


def main() -> int:
    options = _options()
    seed: int = options.seed
    signal.signal(signal.SIGTERM, _end)
    repeat = f"make differential HISTORIES={options.histories} SEED={seed}"
    if options.gate:
        repeat = f"python -m tools.differential --gate --seed {seed}"
    print(f"seed {seed}: `{repeat}` repeats this run", flush=True)
    try:
        executable = driver(covered=options.coverage is not None)
        names = [t.name for t in TARGETS if not options.only or t.name in options.only]
        old = driver_1_16() if any(map(is_old, names)) else executable
    except (BinariesMissing, BuildError) as e:
        print(f"differential: {e}")
        return 2
    if options.coverage is not None:
        options.coverage.mkdir(parents=True, exist_ok=True)
        os.environ[COVERAGE] = str(options.coverage.resolve())
    if not leave_network():
        if must_run() or os.getuid() == 0:
            print("differential: no network of our own is allowed here; unset CI and be no root, or allow unshare(2)")
            return 2
        print("no network of our own is allowed here: handlers are tried on the loopback of this machine", flush=True)
    with Kubelet(executable) as kubelet:
        print(f"kubelet packages {kubelet.said['kubernetes']}, {kubelet.said['go']}, gates {kubelet.said['gates']}")
        fixed = [t for t in TARGETS if t.name in names and t.name in CASES]
        if options.record:
            return _record(fixed, kubelet)
    with _comparing(1) as one:  # servers of histories are not to be forked
        failed_fixed = one.submit(_play_fixed, executable, [t.name for t in fixed]).result()
    executables = {name: old if is_old(name) else executable for name in names}
    jobs = _jobs(executables, *_amounts(options, names), seed)
    if options.minutes is not None:
        until = time.monotonic() + 60 * options.minutes
        jobs = [replace(job, until=until) for job in jobs]
    differing = _compare(jobs)
    errors = ERRORS if options.planted else gate.one_for_each(ERRORS) if options.gate else ()
    missed = _plant(executables, [error for error in errors if error.target in names], seed) if errors else 0
    failed_fixes = _show_fixes(executable, [f for f in FIXES if f.target in names], seed) if options.fixes else 0
    if options.coverage is not None:
        print(coverage.report(options.coverage.resolve(), executable.parent / "source"))
    if failed_fixed:
        print(f"fixed histories of {failed_fixed} targets differ")
    print(_closing(names, differing, missed, seed))
    return 1 if failed_fixed or differing or missed or failed_fixes else 0


def _amounts(options: argparse.Namespace, names: Sequence[str]) -> tuple[dict[str, int], int]:
    """How many histories of each target, and in how many parts each is played."""
    if options.gate:
        return gate.histories(names), gate.PARTS
    parts = options.parts if options.minutes is None else -(-options.histories // TURN)
    return dict.fromkeys(names, options.histories), parts


def _closing(names: Sequence[str], differing: Sequence[str], missed: int, seed: int) -> str:
    """All of it that a table of steps shows, where what came before may have been cut."""
    which = f" ({', '.join(differing)}, with seed {seed})" if differing else ""
    return f"{len(names) - len(differing)} passed, {len(differing)} failed{which}; {missed} planted errors missed"


def _record(targets: Sequence[Target], kubelet: Kubelet) -> int:
    for target in targets:
        cases = CASES[target.name]
        _, theirs = answers(target, kubelet, dict(GATES[0]), list(cases.values()))
        write_answers(target.name, dict(zip(cases, theirs, strict=True)))
        print(f"{target.name:<12} {len(cases):>9,} answers written")
    return 0


def _play_fixed(executable: Path, names: Sequence[str]) -> int:
    """How many targets answer fixed histories otherwise than the kubelet."""
    with Kubelet(executable) as kubelet:
        return sum(_plays_otherwise(target, kubelet) for target in TARGETS if target.name in names)


def _plays_otherwise(target: Target, kubelet: Kubelet) -> bool:
    """Whether the agent answers one of the target's fixed histories otherwise than the kubelet, under some gates."""
    cases, differing = CASES[target.name], list[str]()
    for gates in map(dict, GATES):
        ours, theirs = answers(target, kubelet, gates, list(cases.values()))
        for why, agent, upstream in zip(cases, ours, theirs, strict=True):
            if agent != upstream and differs_again(target, kubelet, gates, cases[why]):
                differing.append(f"{why}\n{Difference(target.name, cases[why], gates, agent, upstream)}")
    said = "DIFFERS" if differing else "equal"
    print(
        f"{target.name:<12} {len(cases):>9,} fixed histories, each with {len(GATES)} sets of gates  {said}", flush=True
    )
    for told in differing[:SHOWN]:
        print(told, flush=True)
    return bool(differing)


@dataclass(frozen=True)
class _Job:
    """A part of a target; `of`: how many parts it has; `until`: when it draws no more, by the clock (monotonic) that
    all processes have."""

    executable: Path
    target: str
    batches: Sequence[tuple[int, int]]
    of: int
    seed: int
    until: float = math.inf

    def run(self) -> Tally:
        limit_s = self.until - time.monotonic()
        if limit_s <= 0:
            return Tally(self.target, 0, 0.0)
        target = next(t for t in TARGETS if t.name == self.target)
        with Kubelet(self.executable) as kubelet:
            return compare(target, kubelet, batches=self.batches, seed=self.seed, limit_s=limit_s)


def _jobs(executables: Mapping[str, Path], histories: Mapping[str, int], parts: int, seed: int) -> list[_Job]:
    """By target: `executables`, its driver; `histories`, how many of them are played."""
    jobs: list[tuple[int, _Job]] = []
    for name, count in histories.items():
        batches = batches_of(count)
        size = -(-len(batches) // parts)
        shares = [batches[first : first + size] for first in range(0, len(batches), size)]
        jobs += [(turn, _Job(executables[name], name, share, len(shares), seed)) for turn, share in enumerate(shares)]
    return [job for _, job in sorted(jobs, key=lambda entry: entry[0])]


def _compare(jobs: Sequence[_Job]) -> list[str]:
    """The targets that differ."""
    parts: defaultdict[str, list[Tally]] = defaultdict(list)
    for job, tally in _ended(jobs):
        parts[job.target].append(tally)
        if len(parts[job.target]) == job.of:
            _show(parts[job.target])
    return [target for target, tallies in parts.items() if _differs(tallies)]


def _differs(tallies: Sequence[Tally]) -> bool:
    """Whether a target does, of which these are the parts."""
    forgiven, histories = sum(len(t.forgiven) for t in tallies), sum(t.histories for t in tallies)
    return any(t.difference for t in tallies) or too_many(forgiven, histories)


def _ended(jobs: Sequence[_Job]) -> Iterator[tuple[_Job, Tally]]:
    if len(jobs) == 1:
        yield jobs[0], jobs[0].run()
        return
    with _comparing(os.cpu_count()) as pool:
        running = {pool.submit(job.run): job for job in jobs}
        for future in as_completed(running):
            job = running[future]
            tally = Tally(job.target, 0, 0.0) if future.cancelled() else future.result()
            if tally.difference:  # the others would find it, too, and take as long to make it small
                for other, its in running.items():
                    if its.target == job.target:
                        other.cancel()
            yield job, tally


def _show(tallies: Sequence[Tally]) -> None:
    histories = sum(t.histories for t in tallies)
    rate = histories / max(sum(t.seconds for t in tallies), 1e-3)
    difference = next((t.difference for t in tallies if t.difference), None)
    said = "DIFFERS" if _differs(tallies) else "equal"
    print(
        f"{tallies[0].target:<12} {histories:>9,} histories {rate:>7,.0f}/s a process  {said}",
        flush=True,
    )
    forgiven = [history for tally in tallies for history in tally.forgiven]
    if forgiven:
        print(f"  {len(forgiven)} agreed only when they were played again, as {shortened(forgiven[0])}", flush=True)
    if difference:
        print(difference, flush=True)


def _show_fixes(executable: Path, fixes: Sequence[Fix], seed: int) -> int:
    """How many make no difference, or one that is not theirs."""
    failed = 0
    for fix in fixes:
        with Kubelet(executable) as kubelet:
            found = shown(fix, kubelet, seed)
        failed += not found.differing or bool(found.strange)
        print(
            f"{fix.name}: {found.differing} histories differ while it is on, each as where the kubelet is mended,"
            f" but for {len(found.strange)}"
        )
        if found.strange:
            print(f"  {json.dumps(found.strange[0])}")
    return failed


def _plant(executables: Mapping[str, Path], errors: Sequence[Planted], seed: int) -> int:
    """How many errors were not found."""
    began = time.monotonic()
    names = {error.target for error in errors}
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(os.cpu_count()) as pool:
        answered = {
            t.name: stack.enter_context(planted.Answered(executables[t.name], t, seed))
            for t in TARGETS
            if t.name in names
        }
        searches = [pool.submit(planted.found, error, answered[error.target]) for error in errors]
        results = [(error, search.result()) for error, search in zip(errors, searches, strict=True)]
    missed = [error for error, needed in results if needed is None]
    rarest = sorted(((needed, error) for error, needed in results if needed is not None), key=lambda r: -r[0])
    for error in missed:
        print(f"NOT FOUND: {error}")
    for needed, error in rarest[:RAREST]:
        print(f"found in {needed:>6,} histories: {error}")
    print(f"{len(rarest)} of {len(errors)} planted errors found in {time.monotonic() - began:.0f} s")
    return len(missed)


if __name__ == "__main__":
    sys.exit(main())
