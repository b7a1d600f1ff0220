"""``check``: what configuration and policies amount to, every mistake at once, and what other policies would change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import NOBODY, run

SHIPPED = str(Path(__file__).parents[2] / "policies")


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_shipped_policies_are_shown_with_where_each_value_comes_from() -> None:
    ran = run("check", SHIPPED)
    assert ran.code == 0
    assert "tenant documents, task ocr" in ran.out
    assert "documents.yaml:21 tasks.ocr.max_pixels" in ran.out
    assert "built-in default" not in ran.out.split("tenant documents, task ocr")[1]
    assert "Configuration is valid" in ran.err


def test_check_as_json() -> None:
    told = run("check", SHIPPED, "--json").json
    ocr = next(each for each in told["policies"] if (each["tenant"], each["task"]) == ("documents", "ocr"))
    assert ocr["values"]["max_pixels"]["value"] == 4194304
    assert ocr["values"]["hosts"]["value"] == ["*.archive.example.com", "scans.example.com"]


def test_secrets_are_masked(tmp_path: Path) -> None:
    config = write(tmp_path / "gateway.yaml", f"backends: [{{url: '{NOBODY}', api_key: hush-hush}}]")
    ran = run("check", "--config", config, "--json")
    assert ran.code == 0
    assert "hush-hush" not in ran.out


def test_what_is_allowed_and_odd_is_a_warning(tmp_path: Path) -> None:
    config = write(tmp_path / "gateway.yaml", f"backends: ['{NOBODY}']\nserver: {{admin_host: 0.0.0.0}}\n")
    ran = run("check", "--config", config)
    assert ran.code == 0
    assert "Warning: server.admin_host: 0.0.0.0 is reached from other machines" in ran.err
    assert [each["setting"] for each in run("check", "--config", config, "--json").json["warnings"]] == [
        "server.admin_host"
    ]
    assert (
        run("check", "--config", write(tmp_path / "other.yaml", f"backends: ['{NOBODY}']"), "--json").json["warnings"]
        == []
    )


def test_a_configuration_that_names_no_backend_is_told_what_serve_needs(tmp_path: Path) -> None:
    ran = run("check", "--config", write(tmp_path / "gateway.yaml", ""))
    assert (ran.code, "Warning: backends: is empty and there are no sources" in ran.err) == (0, True)
    assert "Warning" not in run("check", SHIPPED).err


def test_every_problem_of_the_policies_is_told_at_once(tmp_path: Path) -> None:
    write(tmp_path / "default.yaml", "rules:\n  max_image: 3\n  max_image_bytes: 3Mib\n")
    ran = run("check", str(tmp_path))
    assert ran.code == 2
    assert "default.yaml:2 rules.max_image: unknown key; did you mean max_images?" in ran.err
    assert "did you mean MiB?" in ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("server: {prot: 3}", "server.prot: unknown setting; did you mean port?"),
        ("models: {m: {checkpoint: nothing}}", "models.m.checkpoint: the catalogue has no 'nothing'"),
        ("backends: [{url: nonsense}]", "must be an http:// or https:// URL"),
        ("a: [", "gateway.yaml"),
    ],
)
def test_problems_of_the_configuration(tmp_path: Path, text: str, said: str) -> None:
    ran = run("check", "--config", write(tmp_path / "gateway.yaml", text))
    assert ran.code == 2
    assert said in ran.err


def test_every_shipped_tenant_and_task_is_shown_and_what_models_change() -> None:
    told = run("check", SHIPPED, "--json").json
    places = [(each["tenant"], each["task"], each.get("models")) for each in told["policies"]]
    assert {tenant for tenant, _, _ in places} == {"default", "chat-product", "classifier", "documents", "migrated-app"}
    assert ("chat-product", "chat", "Qwen/Qwen2.5-VL-*") in places
    assert len(places) == len(set(places))
    assert all(shown["reason"] for each in told["policies"] for shown in each["values"].values())
    text = run("check", SHIPPED).out
    assert "tenant chat-product, task chat, models Qwen/Qwen2.5-VL-*" in text


SIX_MISTAKES = """\
tenant: acme
default_task: ocr
rules:
  max_image: 8
  max_image_bytes: 20Mib
  max_images: 8
  max_images: 9
  on_excess: {max_pixels: shrnk}
tasks:
  ocr: {output: pgn}
choose:
  - {task: orc}
"""


def test_six_mistakes_are_six_messages_with_line_and_suggestion(tmp_path: Path) -> None:
    write(tmp_path / "acme.yaml", SIX_MISTAKES)
    ran = run("check", str(tmp_path))
    lines = [line.strip() for line in ran.err.splitlines() if "acme.yaml:" in line]
    assert ran.code == 2
    assert [line.partition(": ")[0].split("acme.yaml:")[1] for line in lines] == [
        "4 rules.max_image",
        "5 rules.max_image_bytes",
        "7 rules.max_images",
        "8 rules.on_excess.max_pixels",
        "10 tasks.ocr.output",
        "12 choose.0.task",
    ]
    suggested = [line.rpartition("did you mean ")[2] for line in lines if "did you mean" in line]
    assert suggested == ["max_images?", "MiB?", "shrink?", "png?", "ocr?"]
    assert "first in line 6" in lines[2]


def test_a_folder_without_policies_is_a_mistake(tmp_path: Path) -> None:
    ran = run("check", str(tmp_path))
    assert (ran.code, "no policy file is here" in ran.err) == (2, True)


OLD = "tenant: acme\nrules: {max_images: 4}\ntasks: {chat: {}, ocr: {}}\n"
NEW = "tenant: acme\nprofile: anthropic\nrules: {max_images: 4}\ntasks: {chat: {}, document: {}}\n"
NEW += "models: {'m*': {max_images: 2}}\n"


def test_differences_between_two_folders(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    write(one / "acme.yaml", OLD)
    write(other / "acme.yaml", NEW)
    told = run("check", str(one), str(other), "--json").json["differences"]
    by_place = {(each["tenant"], each["task"], each["models"], each["key"]): each for each in told}
    side = by_place["acme", "chat", None, "max_side"]
    assert (side["old"]["value"], side["new"]["value"]) == ([], {"1": 1568})
    assert side["new"]["reason"] == "profile anthropic (other/acme.yaml:2 profile)"
    assert by_place["acme", "chat", "m*", "max_images"]["new"]["value"] == 2
    assert by_place["acme", "document", None, None]["old"] is None
    assert by_place["acme", "ocr", None, None]["new"] is None
    assert ("acme", "chat", None, "max_images") not in by_place
    assert not any(each["tenant"] == "default" for each in told)
    text = run("check", str(one), str(other))
    assert "What the new policies change" in text.out
    assert ("task added" in text.out, "task removed" in text.out) == (True, True)
    assert f"{len(told)} difference(s)" in text.err
    assert run("check", str(one), str(one), "--json").json == {"differences": []}


def test_keys_that_go_are_told_without_being_shown(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    write(one / "acme.yaml", f"tenant: acme\nkeys: ['sha256:{'ab' * 32}']\n")
    write(other / "acme.yaml", "tenant: acme\n")
    text = run("check", str(one), str(other))
    assert "no key is asked for any more" in text.out
    assert "2 difference(s)" in text.err
    assert "abab" not in text.out + text.err
    told = run("check", str(one), str(other), "--json").json["differences"]
    assert [(each["tenant"], each["task"], each["key"], each["new"]["value"]) for each in told] == [
        ("*", None, "keys", "no key is asked for any more"),
        ("acme", None, "keys", "none"),
    ]


def test_a_broken_new_folder_is_told(tmp_path: Path) -> None:
    write(tmp_path / "acme.yaml", SIX_MISTAKES)
    assert run("check", SHIPPED, str(tmp_path)).code == 2


def test_every_file_that_settings_name_is_tried(tmp_path: Path) -> None:
    config = write(
        tmp_path / "gateway.yaml",
        "backends: [{url: 'https://127.0.0.1:9', tls_ca_file: gone.pem}]\n"
        "sources: ['file:gone.yaml']\n"
        "server: {tls_cert_file: gone.pem, unix_socket: /no/such/folder/gateway.sock}\n"
        "jwt: {issuer: 'https://issuer.example'}\n"
        "models: {one: {path: /no/such/folder}}\n",
    )
    ran = run("check", "--config", config)
    assert ran.code == 2
    for told in (
        "backend 127.0.0.1:9: gone.pem cannot be used for TLS",
        "sources.0.url: ",
        "server.tls_cert_file: gone.pem",
        "server.unix_socket: /no/such/folder/gateway.sock cannot be made",
        "jwt.audience: ",
        "models.one.path: /no/such/folder/config.json",
    ):
        assert told in ran.err


def test_rules_without_a_value_are_told_in_their_own_words() -> None:
    rows = [line.split() for line in run("check").out.splitlines()]
    told = {row[0]: row[1] for row in rows if len(row) > 2}
    assert (told["adaptive"], told["allowed_models"]) == ("off", "any")
