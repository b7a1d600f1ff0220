"""LiteLLM as a client, unmodified: its OpenAI-compatible, vLLM and Anthropic providers."""

from __future__ import annotations

from typing import Any

import litellm
from scenes import MODEL, Stage, play

TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
        },
    },
}


def asked(
    stage: Stage, picture: str, text: str = "Describe", provider: str = "openai", **changes: Any
) -> dict[str, Any]:
    parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": picture}}]
    base = stage.url if provider == "anthropic" else f"{stage.url}/v1"
    return {
        "model": f"{provider}/{MODEL}", "messages": [{"role": "user", "content": parts}], "api_base": base,
        "api_key": "any", "num_retries": 0, "max_retries": 0, **changes,
    }  # fmt: skip


def openai_whole(stage: Stage) -> object:
    answer = litellm.completion(**asked(stage, stage.big))
    return {"text": answer.choices[0].message.content, "input_tokens": answer.usage.prompt_tokens}


def vllm_whole(stage: Stage) -> object:
    return {"text": litellm.completion(**asked(stage, stage.big, provider="hosted_vllm")).choices[0].message.content}


def openai_streamed(stage: Stage) -> object:
    pieces = litellm.completion(**asked(stage, stage.big), stream=True, stream_options={"include_usage": True})
    text, tokens = "", None
    for piece in pieces:
        text += piece.choices[0].delta.content or "" if piece.choices else ""
        tokens = piece.usage.prompt_tokens if getattr(piece, "usage", None) else tokens
    return {"text": text, "input_tokens": tokens}


async def openai_async(stage: Stage) -> object:
    whole = await litellm.acompletion(**asked(stage, stage.big, "number 1"))
    streamed = await litellm.acompletion(**asked(stage, stage.small), stream=True)
    text = "".join([piece.choices[0].delta.content or "" async for piece in streamed])
    return {"texts": [whole.choices[0].message.content], "streamed": text}


def openai_tools(stage: Stage) -> object:
    answer = litellm.completion(**asked(stage, stage.small, "call tool please"), tools=[TOOL])
    call = answer.choices[0].message.tool_calls[0].function
    return {"name": call.name, "arguments": call.arguments}


def openai_refused(stage: Stage) -> object:
    return litellm.completion(**asked(stage, stage.broken))


def openai_unknown_model(stage: Stage) -> object:
    return litellm.completion(**{**asked(stage, stage.small), "model": "openai/nobody/serves-this"})


def anthropic_whole(stage: Stage) -> object:
    answer = litellm.completion(**asked(stage, stage.big, provider="anthropic", max_tokens=100))
    return {"text": answer.choices[0].message.content}


def anthropic_streamed(stage: Stage) -> object:
    pieces = litellm.completion(**asked(stage, stage.big, provider="anthropic", max_tokens=100), stream=True)
    return {"text": "".join(piece.choices[0].delta.content or "" for piece in pieces)}


def responses_whole(stage: Stage) -> object:
    parts = [{"type": "input_text", "text": "Describe"}, {"type": "input_image", "image_url": stage.big}]
    answer = litellm.responses(
        model=f"openai/{MODEL}", input=[{"role": "user", "content": parts}], api_base=f"{stage.url}/v1", api_key="any"
    )
    return {"text": answer.output[0].content[0].text}


if __name__ == "__main__":
    play(
        openai_whole, vllm_whole, openai_streamed, openai_async, openai_tools, openai_refused, openai_unknown_model,
        anthropic_whole, anthropic_streamed, responses_whole,
    )  # fmt: skip
