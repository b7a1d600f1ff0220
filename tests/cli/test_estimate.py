"""``estimate``: numbers of the catalogue, from sizes and files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import draw_pictures, run


def test_the_anchors_come_out() -> None:
    sizes = ("224x224", "448x448", "896x896", "1280x720")
    rows = run("estimate", *sizes, "--model", "Qwen/Qwen3-VL-8B-Instruct", "--json").json
    assert [(row["size"], row["tokens"]) for row in rows] == [
        ("224x224", 64), ("448x448", 196), ("896x896", 784), ("1280x720", 880),
    ]  # fmt: skip
    assert rows[-1]["grid"] == "44x80"


def test_models_are_compared_in_one_table() -> None:
    ran = run("estimate", "1280x720", "--model", "Qwen/Qwen3-VL-8B-Instruct", "--model", "Qwen/Qwen2.5-VL-7B-Instruct")
    assert ran.code == 0
    assert "Qwen3-VL" in ran.out
    assert "Qwen2.5-VL" in ran.out


def test_closed_apis_stand_beside_the_others_at_every_level() -> None:
    sizes = ("1170x2532", "1280x720", "4032x3024")
    models = ("Qwen3.5-0.8B", "Llama-3.2-11B-Vision", "InternVL2-8B", "gpt-4o")
    named = [flag for model in models for flag in ("--model", model)]
    rows = run("estimate", *sizes, *named, "--json").json
    assert [(row["size"], row["detail"], row["tokens"]) for row in rows if row["model"] == "gpt-4o"] == [
        ("1170x2532", "low", 85), ("1170x2532", "high", 1445), ("1280x720", "low", 85), ("1280x720", "high", 1105),
        ("4032x3024", "low", 85), ("4032x3024", "high", 765),
    ]  # fmt: skip
    assert [row["tokens"] for row in rows if row["model"] == "Qwen3.5-0.8B"] == [2923, 880, 11844]
    table = run("estimate", *sizes, *named)
    assert table.code == 0
    assert all(model in table.out for model in models)
    assert "as its vendor documents it" in table.err


def test_kv_is_that_of_one_gpu_in_the_engines_type() -> None:
    one = ["estimate", "1280x720", "--model", "Qwen/Qwen3-VL-8B-Instruct", "--json"]
    whole, shared, small = (
        run(*one, *flags).json[0]["kv_mb"] for flags in ((), ("--tensor-parallel", "4"), ("--kv-cache-dtype", "fp8"))
    )
    assert whole == 130.1
    assert (shared, small) == (round(whole / 4, 1), round(whole / 2, 1))


def test_a_kv_type_that_is_not_counted_is_refused() -> None:
    ran = run("estimate", "1280x720", "--kv-cache-dtype", "fp99")
    assert ran.code == 2
    assert "none that is counted" in ran.err


def test_models_and_aliases_are_those_of_a_configuration(tmp_path: Path) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(
        "models:\n  ours: {checkpoint: Qwen/Qwen3-VL-8B-Instruct}\n  gpt-4o: {alias_of: ours}\n", encoding="utf-8"
    )
    given = ["estimate", "1280x720", "--model", "ours", "--model", "gpt-4o", "--json"]
    known = run(*given, "--config", str(config))
    assert [(row["model"], row["tokens"]) for row in known.json] == [("ours", 880), ("ours", 880)]
    assert "not in the catalogue" not in known.err
    assert {row["model"] for row in run(*given).json} == {"ours", "gpt-4o"}
    config.write_text("models: {ours: {family: nobody}}\n", encoding="utf-8")
    refused = run("estimate", "1280x720", "--config", str(config))
    assert (refused.code, "The configuration cannot be used" in refused.err) == (2, True)


def test_a_file_is_measured_upright(tmp_path: Path) -> None:
    pictures = draw_pictures(tmp_path)
    (row,) = run("estimate", str(pictures / "turned.jpg"), "--json").json
    assert row["size"] == "480x640"


def test_the_cap_of_the_engine_and_of_the_policy_show(tmp_path: Path) -> None:
    (tmp_path / "default.yaml").write_text("tasks:\n  chat:\n  ocr: {max_pixels: 262144}\n", encoding="utf-8")
    (by_engine,) = run("estimate", "4000x3000", "--max-pixels", "1280x32x32", "--json").json
    (by_policy,) = run("estimate", "4000x3000", "--policies", str(tmp_path), "--task", "ocr", "--json").json
    assert (by_engine["target"], by_engine["tokens"]) == ("1312x960", 1230)
    assert by_policy["tokens"] <= 256
    assert by_policy["tokens_original"] == by_engine["tokens_original"] == 11750


def test_an_unknown_model_is_an_upper_estimate_and_says_so() -> None:
    ran = run("estimate", "640x480", "--model", "nobody/knows")
    assert ran.code == 0
    assert "not in the catalogue" in ran.err


@pytest.mark.parametrize("arguments", [["--json"], []])
def test_an_impossible_size_is_a_row_and_an_exit_code(arguments: list[str]) -> None:
    ran = run("estimate", "640x480", "1x99999", *arguments)
    assert ran.code == 1
    assert "aspect_ratio_exceeded" in ran.out
    assert "640x480" in ran.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["large"], "neither a size"),
        (["x" * 5000], "cannot be read"),
        (["640x480", "--tenant", "nobody"], "no tenant 'nobody'; known: default"),
        (["640x480", "--task", "dance"], "allowed here: chat, ocr"),
        (["640x480", "--policies", "no-such-folder"], "there is no such folder"),
        (["640x480", "--max-pixels", "0"], "--max-pixels"),
        (["640x480", "--max-pixels", "1280x32x"], "neither a number of pixels"),
    ],
)
def test_wrong_usage_says_what_would_be_right(arguments: list[str], said: str) -> None:
    ran = run("estimate", *arguments)
    assert ran.code == 2
    assert said in ran.err


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\n and nothing more")
    ran = run("estimate", str(broken))
    assert ran.code == 2
    assert "broken.png: " in ran.err
