"""``python -m tests.fuzz.guided TARGET [--runs N] [--seconds S]``: guided fuzzing of one target, with atheris.

atheris (a libFuzzer for Python; dependency group ``fuzz``) keeps inputs that reach new branches and mutates those. What
it finds is written to ``.fuzz/TARGET/``; ``--keep`` adds what reached something new to the corpus, made small. An input
that is a finding belongs into the corpus as a file with a name that says what it was, together with the repair.
``--replay FILE`` sends files to the target and needs no atheris.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from tests.fuzz.targets.target import Target

_FOUND = Path(__file__).parents[2] / ".fuzz"
# An input that takes longer, or as much memory, is a finding.
_INPUT_TIMEOUT_S, _MEMORY_MIB = 10, 2048
# A corpus is for replays as well: small inputs, and no more than this for each target.
_KEPT_BYTES = 96 * 1024


def main() -> int:
    """Exit status 0 without findings."""
    given = _parse()
    if given.worker:
        _fuzz(given.target, given.instrument, given.worker)
    target = _target(given.target)
    if given.replay:
        for path in given.replay:
            target.check(path.read_bytes())
        return 0
    found = _FOUND / target.name
    found.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        seeds, grown = Path(folder, "seeds"), Path(folder, "grown")
        seeds.mkdir()
        grown.mkdir()
        for number, data in enumerate((*target.seeds(), *target.kept())):
            (seeds / str(number)).write_bytes(data)
        limits = (f"-runs={given.runs}", f"-max_total_time={given.seconds}", f"-seed={given.seed}")
        status = _worker(target, *limits, f"-artifact_prefix={found}/", str(grown), str(seeds))
        if given.keep and not status:
            status = _worker(target, "-merge=1", str(seeds), str(grown))
            _keep(target, seeds)
    return status


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.guided")
    parser.add_argument("target")
    parser.add_argument("--runs", type=int, default=200_000)
    parser.add_argument("--seconds", type=int, default=0, help="end after so long; 0: when all runs are done")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="add what reached something new to the corpus")
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE", help="send these files, and nothing else")
    parser.add_argument("--instrument", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--worker", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser.parse_args()


def _target(name: str) -> Target:
    targets: tuple[Target, ...] = import_module("tests.fuzz.targets.catalogue").TARGETS
    found = next((each for each in targets if each.name == name), None)
    if found is None:
        known = "".join(f"\n  {each.name:12} {each.what}" for each in targets)
        raise SystemExit(f"no target is called {name!r}; there are{known}")
    return found


def _worker(target: Target, *arguments: str) -> int:
    """libFuzzer ends the process it runs in, so it gets one of its own."""
    limits = (
        f"-timeout={_INPUT_TIMEOUT_S}", f"-rss_limit_mb={_MEMORY_MIB}", f"-max_len={target.largest_bytes}",
        f"-dict={target.words}", "-print_final_stats=1",
    )  # fmt: skip
    command = [sys.executable, "-m", "tests.fuzz.guided", target.name, "--instrument", *target.modules]
    command += ["--worker", *limits, *arguments]
    return subprocess.run(command, check=False).returncode


def _fuzz(name: str, modules: Sequence[str], arguments: Sequence[str]) -> None:
    """Run libFuzzer, which ends the process."""
    import atheris  # noqa: PLC0415  # only where inputs are made; replays do without

    # The modules under test must be seen for the first time here; nothing above imports them.
    with atheris.instrument_imports(include=list(modules)):
        target = _target(name)

    def check(data: bytes) -> None:
        try:
            target.check(data)
        except BaseException:
            (_FOUND / name / f"found-{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)
            raise

    atheris.Setup([sys.argv[0], *arguments], check)
    atheris.Fuzz()


def _keep(target: Target, merged: Path) -> None:
    """Put the smallest inputs that reach everything into the corpus, as far as there is room."""
    target.folder.mkdir(parents=True, exist_ok=True)
    room = _KEPT_BYTES - sum(path.stat().st_size for path in target.folder.iterdir())
    known = {*target.seeds(), *target.kept()}
    for path in sorted(merged.iterdir(), key=lambda each: each.stat().st_size):
        data = path.read_bytes()
        if data not in known and len(data) <= room:
            (target.folder / path.name).write_bytes(data)
            room -= len(data)


if __name__ == "__main__":
    sys.exit(main())
