"""Every module can be the first one imported, and the loop's process holds no image library."""

from __future__ import annotations

import subprocess
import sys

import grimp
import pytest

from tests.architecture.tree import ROOT, module_name, source_files

# A fresh fork per module: a cycle shows only when the import starts at the wrong end of it. Third-party packages that
# are heavy and start no thread are loaded before the fork, or the test would spend its time on them.
IMPORT_EACH = """
import gc, importlib, os, sys, traceback
import aiohttp.web, httpx, msgspec, numpy, prometheus_client, redis.asyncio.cluster, redis.asyncio.sentinel
import jwt, rich.progress, rich.table, typer, yaml, PIL.Image, imagecodecs, simplejpeg
gc.freeze()
failed = 0
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        status = 0
        try:
            importlib.import_module(name)
        except BaseException:
            print("importing", name, "first:", flush=True)
            traceback.print_exc(limit=-3, file=sys.stdout)
            status = 1
        sys.stdout.flush()
        os._exit(status)
    failed += os.waitpid(child, 0)[1] != 0
sys.exit(failed != 0)
"""

LOOP_MODULES = """
import sys
import gateway.app
heavy = {"PIL", "pyvips", "simplejpeg", "imagecodecs", "pillow_heif", "numpy", "isal"}
print(*sorted(heavy & sys.modules.keys()))
"""


def _in_cycles() -> list[str]:
    """The modules from which imports lead back to them, a package's ``__init__`` being imported before its modules.

    No other module can be the wrong one to begin with: whatever cycle it leads to is entered by a module of that cycle.
    """
    graph = grimp.build_graph("gateway", exclude_type_checking_imports=True)
    leads_to = {
        module: {*graph.find_modules_directly_imported_by(module), module.rpartition(".")[0]} - {"", module}
        for module in graph.modules
    }
    return sorted(module for module in leads_to if _reaches_itself(module, leads_to))


def _reaches_itself(module: str, leads_to: dict[str, set[str]]) -> bool:
    seen: set[str] = set()
    ahead = list(leads_to[module])
    while ahead:
        here = ahead.pop()
        if here == module:
            return True
        if here not in seen:
            seen.add(here)
            ahead += leads_to[here]
    return False


def _python(*arguments: str) -> str:
    run = subprocess.run([sys.executable, "-c", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.mark.timeout(300)  # hundreds of forks, on a machine that may be busy
def test_any_module_may_be_imported_first() -> None:
    names = _in_cycles()
    assert "gateway.types" in names, "a package that speaks for its modules"
    assert set(names) <= {module_name(path) for path in source_files()}
    _python(IMPORT_EACH, *(name for name in names if not name.endswith("__main__")))


def test_the_loops_process_never_loads_an_image_library() -> None:
    assert _python(LOOP_MODULES).split() == []
