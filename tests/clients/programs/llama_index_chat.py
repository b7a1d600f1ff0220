"""LlamaIndex' multimodal chat classes, unmodified."""

from __future__ import annotations

import base64
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock
from llama_index.core.tools import FunctionTool
from llama_index.llms.anthropic import Anthropic
from llama_index.llms.openai_like import OpenAILike
from scenes import MODEL, Stage, play


def openai(stage: Stage, **changes: Any) -> OpenAILike:
    return OpenAILike(
        model=MODEL, api_base=f"{stage.url}/v1", api_key="any", is_chat_model=True, is_function_calling_model=True,
        context_window=32768, max_retries=0, **changes,
    )  # fmt: skip


def anthropic(stage: Stage) -> Anthropic:
    return Anthropic(model="claude-sonnet-4-0", base_url=stage.url, api_key="any", max_retries=0)


def asked(picture: str, text: str = "Describe") -> list[ChatMessage]:
    media_type, _, data = picture.removeprefix("data:").partition(";base64,")
    image = ImageBlock(image=base64.b64decode(data), image_mimetype=media_type)
    return [ChatMessage(role=MessageRole.USER, blocks=[TextBlock(text=text), image])]


def openai_whole(stage: Stage) -> object:
    answer = openai(stage).chat(asked(stage.big))
    return {"text": answer.message.content, "input_tokens": answer.raw.usage.prompt_tokens}


def openai_streamed(stage: Stage) -> object:
    return {"text": "".join(piece.delta or "" for piece in openai(stage).stream_chat(asked(stage.big)))}


async def openai_async(stage: Stage) -> object:
    model = openai(stage)
    whole = await model.achat(asked(stage.big, "number 1"))
    streamed = "".join([piece.delta or "" async for piece in await model.astream_chat(asked(stage.small))])
    return {"texts": [whole.message.content], "streamed": streamed}


def openai_tools(stage: Stage) -> object:
    def look_up(city: str, days: int) -> str:
        """Look the weather up."""
        return f"{city} {days}"

    model = openai(stage)
    tool = FunctionTool.from_defaults(look_up)
    answer = model.chat_with_tools([tool], chat_history=asked(stage.small, "call tool please"))
    (call,) = model.get_tool_calls_from_response(answer)
    return {"name": call.tool_name, "arguments": call.tool_kwargs}


def openai_refused(stage: Stage) -> object:
    return openai(stage).chat(asked(stage.broken))


def openai_unknown_model(stage: Stage) -> object:
    return openai(stage).chat(asked(stage.small), model="nobody/serves-this")


def anthropic_whole(stage: Stage) -> object:
    return {"text": anthropic(stage).chat(asked(stage.big), model=MODEL).message.content}


def anthropic_streamed(stage: Stage) -> object:
    pieces = anthropic(stage).stream_chat(asked(stage.big), model=MODEL)
    return {"text": "".join(piece.delta or "" for piece in pieces)}


if __name__ == "__main__":
    play(
        openai_whole, openai_streamed, openai_async, openai_tools, openai_refused, openai_unknown_model,
        anthropic_whole, anthropic_streamed,
    )  # fmt: skip
