"""``doctor``, ``explain``: they look and tell; only the doctor sends a few pictures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.api.auth import hash_key
from tests.cli.command import NOBODY, run, start
from tests.simulator import drawn
from tests.simulator.process import MODEL, SimulatorProcess, chat, image_part

SHIPPED = str(Path(__file__).parents[2] / "policies")


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


# --- doctor ----------------------------------------------------------------------------------------------------------


def test_doctor_shows_the_long_facts_of_codecs_in_rows_of_their_own() -> None:
    lines = start("doctor").out.splitlines()
    assert "Codecs" in lines
    assert any(line.startswith("  fingerprints: vips ") for line in lines)


def test_doctor_tells_codecs_and_limits() -> None:
    told = run("doctor", "--json").json
    assert told["codecs"]["default"] in told["codecs"]["available"]
    assert told["limits"]["cpus"] >= 1
    assert told["backends"] == []


def test_doctor_looks_at_backends() -> None:
    with SimulatorProcess("--max-model-len", "4096") as engine:
        ran = start("doctor", "--backend", engine.url, "--json")
    (row,) = ran.json["backends"]
    assert [(trial["size"], trial["predicted"], trial["actual"]) for trial in ran.json["image_tokens"]][:3] == [
        ("64x64", 64, 64), ("224x224", 64, 64), ("448x448", 196, 196),
    ]  # fmt: skip
    assert (row["engine"], row["models"], row["context_tokens"]) == ("vllm", MODEL, 4096)


def test_doctor_notices_an_engine_that_was_started_with_another_cap() -> None:
    with SimulatorProcess("--max-pixels", "262144") as engine:
        ran = start("doctor", "--backend", engine.url)
    assert ran.code == 1
    assert "image 1280x720: 880 tokens predicted, 252 counted by the engine" in ran.err
    assert "backends.max_pixels" in ran.err


def test_doctor_shows_sources_and_what_they_found(tmp_path: Path) -> None:
    with SimulatorProcess("--max-model-len", "4096", "--api-key", "k") as engine:
        write(tmp_path / "backends.yaml", f"- {{url: {engine.url}, name: found}}")
        told = (
            "sources:\n- {url: 'file:backends.yaml', backend: {api_key: k}}\n- {url: 'file:missing.yaml', name: gone}\n"
        )
        ran = start("doctor", "--config", write(tmp_path / "gateway.yaml", told), "--json")
    assert ran.code == 1
    good, bad = ran.json["sources"]
    assert (good["ok"], good["backends"]) == (True, ["found"])
    assert (bad["name"], bad["ok"], bad["backends"]) == ("gone", False, [])
    assert any("source gone: " in problem and "No such file" in problem for problem in ran.json["problems"])
    assert [row["name"] for row in ran.json["backends"]] == ["found"]
    assert ran.json["image_tokens"][0]["agrees"]


def test_doctor_names_a_backend_that_does_not_answer() -> None:
    ran = start("doctor", "--backend", NOBODY)
    assert ran.code == 1
    assert "problem: backend 127.0.0.1:9 does not answer" in ran.err
    assert "None" not in ran.out


# --- explain ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def engine_url() -> str:
    """Explaining sends nothing, so a backend that is not there will do."""
    return NOBODY


def test_explain_tells_policy_plan_estimate_and_decision(tmp_path: Path, engine_url: str) -> None:
    body = chat("What is it?", image_part(drawn.data_url(drawn.jpeg(2000, 1500))), cache_salt="mine")
    request = write(tmp_path / "request.json", json.dumps(body))
    ran = start("explain", request, "--backend", engine_url, "--max-pixels", "1280x32x32", "--policies", SHIPPED)
    assert ran.code == 0, ran.err
    told = ran.json
    assert told["call"]["stripped_fields"] == ["cache_salt"]
    assert told["policy"]["task_reason"].startswith("default_task: ")
    assert told["policy"]["values"]["isolation.cache_salt"]["value"] == "none"
    (image,) = told["images"]
    assert image["part"].startswith("messages.0.content.1.image_url")
    assert (image["original"], image["target"], image["tokens"]) == ([2000, 1500], [1312, 960], 1230)
    assert told["estimate"]["image_tokens"] == 1230
    assert told["decision"]["backend"] == "127.0.0.1:9"
    assert told["decision"]["trail"]


def test_explain_as_a_tenant_with_a_task(tmp_path: Path, engine_url: str) -> None:
    policies = tmp_path / "policies"
    policies.mkdir()
    write(
        policies / "acme.yaml",
        f"tenant: acme\nkeys: ['{hash_key('vgw-acme')}']\ndefault_task: ocr\ntasks: {{ocr: {{}}}}\n",
    )
    request = write(tmp_path / "request.json", json.dumps(chat("hi")))
    common = ("explain", request, "--backend", engine_url, "--policies", str(policies))
    allowed = start(*common, "--key", "vgw-acme", "--task", "ocr")
    assert (allowed.code, allowed.json["policy"]["tenant"], allowed.json["policy"]["task"]) == (0, "acme", "ocr")
    wrong_task = start(*common, "--key", "vgw-acme", "--task", "dance")
    assert (wrong_task.code, wrong_task.json["refused"]["code"]) == (1, "not_permitted")
    wrong_key = start(*common, "--key", "vgw-other")
    assert (wrong_key.code, wrong_key.json["refused"]["code"]) == (1, "unauthenticated")


def test_explain_reads_the_body_of_the_path_it_is_told(tmp_path: Path, engine_url: str) -> None:
    source = {"type": "base64", "media_type": "image/jpeg", "data": drawn.data_url(drawn.jpeg(64, 64)).split(",")[1]}
    content = [{"type": "image", "source": source}]
    asked = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": content}]}
    request = write(tmp_path / "request.json", json.dumps(asked))
    ran = start("explain", request, "--backend", engine_url, "--path", "/v1/messages")
    assert (ran.code, ran.json["call"]["images"]) == (0, 1)
    unknown = start("explain", request, "--backend", engine_url, "--path", "/v1/nobody")
    assert (unknown.code, unknown.json["refused"]["part"]) == (1, "path")
    assert unknown.json["refused"]["message"] == "The gateway reads no '/v1/nobody'."


def test_explain_says_what_would_be_refused(tmp_path: Path, engine_url: str) -> None:
    request = write(tmp_path / "request.json", "nonsense")
    ran = start("explain", request, "--backend", engine_url)
    assert ran.code == 1
    assert ran.json["refused"]["code"] == "not_json"


def test_explain_wants_a_file() -> None:
    assert run("explain", "no-such-file.json").code == 2


def test_a_store_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(f"redis: {{url: 'unix://{tmp_path}/nobody.sock'}}\n", encoding="utf-8")
    ran = run("doctor", "--config", str(config), "--json")
    assert ran.code == 1
    (problem,) = [each for each in ran.json["problems"] if each.startswith("redis.url: ")]
    assert problem.startswith("redis.url: no_connection: ")
    assert f"redis.url: {ran.json['beside']['redis.url']}" == problem
