from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.config.policies import Parsed, PolicyProblems, load_policies, parse_yaml
from gateway.policy.node import ListNode, MappingNode, ScalarNode
from gateway.types import TenantId


def problems_of(folder: Path) -> list[str]:
    with pytest.raises(PolicyProblems) as caught:
        load_policies(folder)
    return [str(problem) for problem in caught.value.problems]


def folder_of(path: Path, **texts: str | bytes) -> Path:
    folder = path / "policies"
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def test_a_folder_becomes_one_set(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, default="rules: {max_images: 7}", acme="tenant: acme")
    (folder / ".draft.yaml").write_text("nonsense: [")
    (folder / "notes.txt").write_text("nonsense: [")
    policies = load_policies(folder)
    assert [document.file for document in policies.documents] == ["policies/acme.yaml", "policies/default.yaml"]
    assert TenantId("acme") in policies.tenants


def test_all_mistakes_of_all_files_come_at_once(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path,
        a="tenant: x\nhots: any\nqueue_timeout_s: 10s\n",
        b="tenant: x\nrules: [\n",
        c="tenant: x\ndefault_task: translate\n",
        d=b"\xff\xfe\x00",
    )
    found = problems_of(folder)
    assert [line.split()[0] for line in found] == [
        "policies/a.yaml:2",
        "policies/a.yaml:3",
        "policies/b.yaml:3:",
        "policies/c.yaml:1",
        "policies/c.yaml:2",
        "policies/d.yaml:1:",
    ]


def test_a_yml_file_is_not_passed_over_in_silence(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, acme="tenant: acme")
    (folder / "default.yml").write_text("rules: {max_images: 7}")
    assert problems_of(folder) == ["policies/default.yml:1: is not read: names of policy files end in .yaml"]


def test_a_folder_without_policies_says_so(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "README.md").write_text("nothing yet")
    (found,) = problems_of(folder)
    assert "no policy file is here (*.yaml)" in found


def test_a_missing_folder_is_said_to_be_missing(tmp_path: Path) -> None:
    assert problems_of(tmp_path / "nowhere") == [f"{tmp_path / 'nowhere'}: there is no such folder"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "loop.yaml").symlink_to("loop.yaml")
    assert problems_of(folder) == ["policies/loop.yaml:1: cannot be read: Too many levels of symbolic links"]


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, big="# " + "x" * 2**20)
    assert problems_of(folder) == ["policies/big.yaml:1: the file is larger than 1048576 bytes"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rules: &shared {max_images: 1}\ntasks: {ocr: *shared}", "YAML aliases (*name) are not supported"),
        ("&a [*a]", "YAML aliases (*name) are not supported"),
        ("rules: !python/object:x {}", "YAML tags (!python/object:x) are not supported"),
        (
            "rules: !!python/object:os.system {}",
            "YAML tags (tag:yaml.org,2002:python/object:os.system) are not supported",
        ),
        ("rules: !!set {max_images}", "YAML tags (tag:yaml.org,2002:set) are not supported"),
        ("tenant: !!binary aGVsbG8=", "YAML tags (tag:yaml.org,2002:binary) are not supported"),
        ("a: 1\n---\nb: 2", "test.yaml:2: is not YAML"),
        ("? [a, b]\n: 1", "a key must be a plain word"),
        ("a: \x00", "holds characters YAML does not allow"),
        ("a: 'open", "is not YAML"),
        ("[" * 990 + "]" * 990, "is nested too deeply"),
        ("[" * 500_000, "is not YAML"),
    ],
)
def test_powers_of_yaml_that_are_refused(text: str, words: str) -> None:
    with pytest.raises(PolicyProblems) as caught:
        parse_yaml(text, "test.yaml")
    assert words in str(caught.value)


def test_nodes_remember_lines_and_keys_written_twice() -> None:
    found = parse_yaml("a: 1\nb:\n  - x\n  - 2.5\na: yes\n", "test.yaml")
    assert isinstance(found, MappingNode)
    assert [(entry.key, entry.line) for entry in found.entries] == [("a", 1), ("b", 2), ("a", 5)]
    assert found.entries[1].node == ListNode(3, (ScalarNode(3, "x"), ScalarNode(4, 2.5)))
    assert found.entries[2].node == ScalarNode(5, value=True)


LONG = ("9" * 5_000, "9" * 5_000)  # more digits than Python converts


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("2026-01-01", "2026-01-01"),
        ("'12'", "12"),
        ("1_000", 1000),
        ("010", "010"),
        ("-0_7", "-0_7"),
        ("1:30", "1:30"),
        ("1:30.5", "1:30.5"),
        ("0", 0),
        ("0.5", 0.5),
        ("9" * 5_000, "9" * 5_000),
    ],
)
def test_plain_values(text: str, value: object) -> None:
    found = parse_yaml(text, "test.yaml")
    assert isinstance(found, ScalarNode)
    assert found.value == value


def test_a_pipe_among_the_files_holds_up_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "acme.yaml")
    with pytest.raises(PolicyProblems, match="is a pipe and no file"):
        load_policies(tmp_path)


def test_a_reload_parses_what_changed_and_nothing_else(tmp_path: Path) -> None:
    folder, parsed = folder_of(tmp_path, default="rules: {max_images: 7}", acme="tenant: acme"), Parsed()
    load_policies(folder, parsed)
    acme, default = folder / "acme.yaml", folder / "default.yaml"
    before = {path: parsed.node(path, f"policies/{path.name}") for path in (acme, default)}
    parsed.forget_others()
    state = default.stat()
    default.write_text("rules: {max_images: 8}")
    os.utime(default, ns=(state.st_atime_ns, state.st_mtime_ns))
    policies = load_policies(folder, parsed)
    assert len(policies.documents) == 2
    assert parsed.node(acme, "policies/acme.yaml") is before[acme]
    assert parsed.node(default, "policies/default.yaml") is not before[default]
    assert parsed.node(acme, "elsewhere/acme.yaml") is not before[acme], "its problems would name another file"


def test_a_file_that_cannot_be_parsed_is_no_obstacle_to_the_next_reload(tmp_path: Path) -> None:
    folder, parsed = folder_of(tmp_path, default="rules: {max_images: 7}"), Parsed()
    for text, works in (("rules: {", False), ("rules: {max_images: 3}", True)):
        (folder / "default.yaml").write_text(text)
        if works:
            assert load_policies(folder, parsed).documents
        else:
            with pytest.raises(PolicyProblems):
                load_policies(folder, parsed)
