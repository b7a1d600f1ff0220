"""Counting as the journey asks for it: exact with a tokenizer, silent where only the engine can tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.media.shm import HeapBody
from gateway.ports import PromptCount
from gateway.prompts import service
from gateway.prompts.service import OFF_LOOP_TEXT_BYTES, Prompts, TokenizersMissing
from gateway.splice.skeleton import cut
from tests.prompts.examples import make_tokenizer, write_files

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "QUJD" * 500}}


async def counted(prompts: Prompts, content: Any, **fields: Any) -> PromptCount | None:
    raw = json.dumps({"model": "m", "messages": [{"role": "user", "content": content}], **fields}).encode()
    tree = cut(raw, 0, len(raw)).tree
    return await prompts.count("m", HeapBody(raw), tree, len(raw))


@pytest.fixture
def prompts(tmp_path: Path) -> Prompts:
    return Prompts({"m": write_files(tmp_path / "m")})


@pytest.mark.parametrize(
    "text", ["What is in the picture?", "x" * 700, "words and ümläute " * 500, 'quoted "\n" ' * 99]
)
async def test_text_is_counted_as_the_tokenizer_does(prompts: Prompts, text: str) -> None:
    prompt = f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
    expected = len(make_tokenizer().encode(prompt, add_special_tokens=False).ids)
    assert await counted(prompts, text) == PromptCount(expected, 0, is_certain=True)


async def test_an_image_leaves_what_stands_around_it(prompts: Prompts) -> None:
    """<|vision_start|> and <|vision_end|> are the template's, <|image_pad|> is replaced by the image's own tokens."""
    without = await counted(prompts, [{"type": "text", "text": "hi"}])
    with_image = await counted(prompts, [{"type": "text", "text": "hi"}, PICTURE, PICTURE])
    assert without is not None
    assert with_image == PromptCount(without.text_tokens + 4, 2, is_certain=True)


async def test_only_the_engine_can_tell(prompts: Prompts) -> None:
    assert await counted(prompts, "x", chat_template="{{ messages }}") is None
    assert await counted(prompts, "a text that spells <|image_pad|>") is None
    assert await counted(prompts, [{"type": "input_audio", "input_audio": {"data": "x"}}]) is None
    assert await counted(prompts, "half a surrogate pair \ud800") is None
    uncertain = await counted(prompts, "x", tools=[{"type": "function", "function": {"name": "f"}}])
    assert uncertain is not None
    assert not uncertain.is_certain


async def test_a_long_text_is_counted_elsewhere_alike(prompts: Prompts, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "the picture " * OFF_LOOP_TEXT_BYTES
    elsewhere = await counted(prompts, text)
    monkeypatch.setattr(service, "OFF_LOOP_TEXT_BYTES", 10**9)
    assert await counted(prompts, text) == elsewhere
    assert elsewhere is not None


def test_which_models_are_covered(prompts: Prompts) -> None:
    assert prompts.covers("m", "openai_chat")
    assert not prompts.covers("m", "anthropic_messages")
    assert not prompts.covers("other", "openai_chat")
    assert not Prompts({}).covers("m", "openai_chat")


def test_a_reload_takes_over_what_did_not_change(tmp_path: Path, prompts: Prompts) -> None:
    same = Prompts({"renamed": tmp_path / "m"}, prompts)
    (old,), (new,) = prompts.loaded, same.loaded
    assert new.files is old.files
    write_files(tmp_path / "m")
    (fresh,) = Prompts({"m": tmp_path / "m"}, prompts).loaded
    assert fresh.files is not old.files


def test_faults_name_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"models\.m\.tokenizer: .*tokenizer\.json: there is no such file"):
        Prompts({"m": tmp_path})
    monkeypatch.setattr(service, "find_spec", lambda library: None)
    with pytest.raises(TokenizersMissing, match=r"pip install 'vlm-gateway\[tokenizers\]'"):
        Prompts({"m": tmp_path})
    assert not Prompts({}).loaded


async def test_the_tokens_are_kept_for_who_wants_them_and_for_nobody_else(prompts: Prompts, tmp_path: Path) -> None:
    parts = [PICTURE, {"type": "text", "text": "hi " * OFF_LOOP_TEXT_BYTES}, PICTURE]
    plain = await counted(prompts, parts)
    kept = await counted(Prompts({"m": tmp_path / "m"}, keeps_tokens=True), parts)
    assert plain is not None
    assert kept is not None
    assert plain.raw is None
    assert kept.raw is not None
    assert len(kept.raw.token_ids) == plain.text_tokens + 2
    pad = make_tokenizer().token_to_id("<|image_pad|>")
    assert [kept.raw.token_ids[place] for place in kept.raw.placeholders] == [pad, pad]
