"""Every target on its corpus and on some damaged inputs of a fixed seed; ``tests.fuzz.guided`` goes further."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz import guided
from tests.fuzz.targets import wires
from tests.fuzz.targets.catalogue import TARGETS
from tests.fuzz.targets.target import CORPUS, Target

_ROOT = Path(__file__).parents[2]
_CORPUS_BYTES = 2 * 1024 * 1024


@pytest.fixture(scope="module", autouse=True)
def closed() -> Iterator[None]:
    yield
    wires.close_all()


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_what_was_found_once_and_damage_of_a_fixed_seed_is_taken_or_refused(target: Target) -> None:
    for data in target.inputs(seed=1, count=target.replayed):
        try:
            target.check(data)
        except BaseException as error:
            error.add_note(f"{target.name}: {data!r}")
            raise


def test_every_target_has_a_corpus_a_dictionary_and_modules_that_exist() -> None:
    names = {target.name for target in TARGETS}
    assert {folder.name for folder in CORPUS.iterdir()} == names
    assert {path.stem for path in (CORPUS.parent / "dictionaries").iterdir()} == names
    for target in TARGETS:
        assert target.kept(), target.name
        for module in target.modules:
            path = _ROOT / module.replace(".", "/")
            assert path.is_dir() or path.with_suffix(".py").is_file(), module


def test_the_corpus_stays_small() -> None:
    assert sum(path.stat().st_size for path in CORPUS.rglob("*")) < _CORPUS_BYTES


def test_an_input_can_be_replayed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = min((CORPUS / "forms").iterdir())
    monkeypatch.setattr(sys, "argv", ["guided", "forms", "--replay", str(kept)])
    assert guided.main() == 0


def test_an_unknown_target_is_told_which_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["guided", "form"])
    with pytest.raises(SystemExit, match="skeleton"):
        guided.main()
