from __future__ import annotations

import dataclasses

import pytest

from gateway.simulator.__main__ import parse
from gateway.simulator.geometry import Family
from gateway.simulator.settings import EngineKind, SimulatorSettings
from tests.simulator.process import MODEL, SimulatorProcess


def test_without_flags_the_settings_are_the_defaults() -> None:
    assert parse([]) == SimulatorSettings()


def test_flags_set_fields_of_every_type() -> None:
    settings = parse(
        [
            *("--engine", "sglang", "--port", "0", "--family", "qwen2_5_vl", "--max-pixels", "1003520", "--speed", "0"),
            *("--shutdown-timeout", "30", "--no-prompt-tokens-details", "--record-api", "--max-num-queued-reqs", "4"),
        ]
    )
    assert settings.engine is EngineKind.SGLANG
    assert settings.family is Family.QWEN2_5_VL
    assert (settings.max_pixels, settings.max_num_queued_reqs, settings.speed) == (1_003_520, 4, 0.0)
    assert settings.shutdown_timeout_s == 30.0
    assert settings.record_api
    assert not settings.prompt_tokens_details


@pytest.mark.parametrize("argv", [["--engine", "tgi"], ["--kv-tokens", "1"], ["--nope"], ["--port", "x"]])
def test_what_is_not_understood_ends_with_2_and_a_message(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(argv)
    assert caught.value.code == 2
    assert "engine-sim: error:" in capsys.readouterr().err


def test_help_names_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"])
    shown = capsys.readouterr().out
    for field in dataclasses.fields(SimulatorSettings):
        assert field.metadata.get("flag", "--" + field.name.replace("_", "-")) in shown


def test_a_process_says_where_it_listens(vllm_process: SimulatorProcess) -> None:
    assert vllm_process.ready == {"url": vllm_process.url, "engine": "vllm", "model": MODEL}
