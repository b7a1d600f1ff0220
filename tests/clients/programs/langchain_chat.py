"""LangChain's chat classes of both vendors, unmodified."""

from __future__ import annotations

from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr
from scenes import MODEL, Stage, play


class Weather(BaseModel):
    """The weather somewhere."""

    city: str
    days: int


def openai(stage: Stage, **changes: Any) -> ChatOpenAI:
    return ChatOpenAI(model=MODEL, base_url=f"{stage.url}/v1", api_key=SecretStr("any"), max_retries=0, **changes)


def anthropic(stage: Stage, **changes: Any) -> ChatAnthropic:
    return ChatAnthropic(
        model_name=MODEL,
        base_url=stage.url,
        api_key=SecretStr("any"),
        max_retries=0,
        timeout=None,
        stop=None,
        **changes,
    )


def asked(picture: str, text: str = "Describe") -> list[BaseMessage]:
    """A picture in LangChain's own form, which its classes translate into each vendor's."""
    media_type, _, data = picture.removeprefix("data:").partition(";base64,")
    image = {"type": "image", "source_type": "base64", "mime_type": media_type, "data": data}
    return [HumanMessage(content=[{"type": "text", "text": text}, image])]


def said(message: BaseMessage) -> dict[str, Any]:
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    return {"text": message.text, "input_tokens": usage["input_tokens"] if usage else None}


def openai_whole(stage: Stage) -> object:
    return said(openai(stage).invoke(asked(stage.big)))


def openai_image_url(stage: Stage) -> object:
    part = {"type": "image_url", "image_url": {"url": stage.big, "detail": "high"}}
    return said(openai(stage).invoke([HumanMessage(content=["Look", part])]))


def openai_streamed(stage: Stage) -> object:
    pieces = list(openai(stage, stream_usage=True).stream(asked(stage.big)))
    whole = pieces[0]
    for piece in pieces[1:]:
        whole = whole + piece
    return {**said(whole), "pieces": len(pieces)}


async def openai_async(stage: Stage) -> object:
    model = openai(stage)
    answers = await model.abatch([asked(stage.big, f"number {n}") for n in range(3)])
    streamed = "".join([piece.text async for piece in model.astream(asked(stage.small))])
    return {"texts": [answer.text for answer in answers], "streamed": streamed}


def openai_tools(stage: Stage) -> object:
    model = openai(stage).bind_tools([Weather])
    history = asked(stage.small, "call tool please")
    first = model.invoke(history)
    assert isinstance(first, AIMessage)
    call = first.tool_calls[0]
    second = model.invoke([*history, first, ToolMessage("sunny", tool_call_id=call["id"])])
    return {"name": call["name"], "arguments": call["args"], "then": second.text}


def openai_structured(stage: Stage) -> object:
    found = openai(stage).with_structured_output(Weather, method="json_schema").invoke(asked(stage.small))
    assert isinstance(found, Weather)
    return found.model_dump()


def openai_responses(stage: Stage) -> object:
    return said(openai(stage, use_responses_api=True).invoke(asked(stage.big)))


def openai_refused(stage: Stage) -> object:
    return openai(stage).invoke(asked(stage.broken))


def openai_unknown_model(stage: Stage) -> object:
    return openai(stage).invoke("hi", model="nobody/serves-this")


def anthropic_whole(stage: Stage) -> object:
    return said(anthropic(stage).invoke(asked(stage.big)))


def anthropic_streamed(stage: Stage) -> object:
    return {"text": "".join(piece.text for piece in anthropic(stage).stream(asked(stage.big)))}


def anthropic_tools(stage: Stage) -> object:
    first = anthropic(stage).bind_tools([Weather]).invoke(asked(stage.small, "call tool please"))
    assert isinstance(first, AIMessage)
    return {"name": first.tool_calls[0]["name"], "arguments": first.tool_calls[0]["args"]}


def anthropic_refused(stage: Stage) -> object:
    return anthropic(stage).invoke(asked(stage.broken))


def anthropic_counted(stage: Stage) -> object:
    return anthropic(stage).get_num_tokens_from_messages(asked(stage.big))


if __name__ == "__main__":
    play(
        openai_whole, openai_image_url, openai_streamed, openai_async, openai_tools, openai_structured,
        openai_responses, openai_refused, openai_unknown_model, anthropic_whole, anthropic_streamed, anthropic_tools,
        anthropic_refused, anthropic_counted,
    )  # fmt: skip
