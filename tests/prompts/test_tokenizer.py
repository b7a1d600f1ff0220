"""A model's files: which are read, and what is said of broken ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.prompts.tokenizer import PromptFiles
from tests.prompts.examples import STRING_TEMPLATE, TEMPLATE, write_files


def test_special_tokens_count_where_the_template_wrote_them(tmp_path: Path) -> None:
    files = PromptFiles(write_files(tmp_path))
    counted = files.count("<|im_start|><|vision_start|><|image_pad|><|vision_end|><|im_end|>")
    assert counted is not None
    assert (counted.tokens, counted.image_tokens) == (5, 1)
    assert files.count("\ud800") is None


def test_a_tokenizer_may_be_named_itself(tmp_path: Path) -> None:
    write_files(tmp_path)
    assert PromptFiles(tmp_path / "tokenizer.json").template.takes_parts


def test_a_template_of_its_own_file_comes_first(tmp_path: Path) -> None:
    write_files(tmp_path, TEMPLATE)
    (tmp_path / "chat_template.json").write_text(json.dumps({"chat_template": STRING_TEMPLATE}))
    assert not PromptFiles(tmp_path).template.takes_parts
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    assert PromptFiles(tmp_path).template.takes_parts


def test_named_templates_have_one_for_tools(tmp_path: Path) -> None:
    write_files(tmp_path)
    named = [{"name": "default", "template": TEMPLATE}, {"name": "tool_use", "template": STRING_TEMPLATE}]
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"chat_template": named, "bos_token": {"content": "<s>"}})
    )
    files = PromptFiles(tmp_path)
    assert (files.template.takes_parts, files.tool_template.takes_parts) == (True, False)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("tokenizer.json", "{}", "tokenizer.json: is no tokenizer"),
        ("tokenizer_config.json", "{", "tokenizer_config.json: is not JSON"),
        ("tokenizer_config.json", "[]", "tokenizer_config.json: must hold an object"),
        ("tokenizer_config.json", "{}", "has no chat template"),
        ("tokenizer_config.json", "[" * 100_000, "tokenizer_config.json: is not JSON"),
        ("tokenizer_config.json", '{"chat_template": [{"name": {}, "template": "x"}]}', "has no chat template"),
        ("chat_template.jinja", "{% if %}", "the chat template cannot be read"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, file: str, text: str, message: str) -> None:
    write_files(tmp_path)
    (tmp_path / file).write_text(text)
    with pytest.raises(ValueError, match=message):
        PromptFiles(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no such file"):
        PromptFiles(tmp_path)


def test_text_that_is_none_names_its_file(tmp_path: Path) -> None:
    write_files(tmp_path)
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"chat_template\.jinja: is not UTF-8"):
        PromptFiles(tmp_path)
    with (tmp_path / "chat_template.jinja").open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(ValueError, match=r"chat_template\.jinja: is larger than"):
        PromptFiles(tmp_path)


def test_a_panic_of_the_library_is_a_broken_file(tmp_path: Path) -> None:
    write_files(tmp_path)
    model = {"type": "Unigram", "unk_id": 0, "vocab": [["a", 0.0]]}
    normalizer = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"version": "1.0", "model": model, "normalizer": normalizer}))
    with pytest.raises(ValueError, match="is no tokenizer"):
        PromptFiles(tmp_path)
