from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.media import codecs
from gateway.media.codecs import available_backends
from gateway.media.codecs.preload import FUNCTIONS

pytestmark = pytest.mark.slow

SCRIPT = """
import sys
from gateway.media.worker import BackendCodec
codec = BackendCodec(sys.argv[1])
from tests.fuzz.corpus import corpus
from tests.media.codecs.samples import plan_for
from gateway.errors import GatewayError
from gateway.ports import Accepts
from gateway.types import Size
seeds = corpus()
before = set(sys.modules)
opened = []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event == "open" else None)
codec.fingerprint
done = 0
for name, data in seeds.items():
    try:
        codec.render(data, codec.probe(data, Accepts(documents=True)), plan_for(Size(16, 16)))
        done += 1
    except GatewayError:
        pass
print(sorted(set(sys.modules) - before), opened, done > 10)
"""


def test_every_function_that_is_used_is_loaded() -> None:
    sources = [path.read_text() for path in Path(codecs.__file__).parent.rglob("*.py")]
    used = {name for source in sources for name in re.findall(r"\bimagecodecs\.([a-z0-9]+_[a-z]+)\b", source)}
    assert used == set(FUNCTIONS)


@pytest.mark.parametrize("backend", available_backends())
def test_nothing_is_loaded_or_opened_once_work_begins(backend: str) -> None:
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, backend], check=True, capture_output=True, text=True, env={"PYTHONPATH": root}
    )
    assert done.stdout.strip() == "[] [] True"
