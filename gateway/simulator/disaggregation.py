"""Parts of a request in several engines: pictures encoded elsewhere, prompts computed elsewhere.

vLLM 0.32.0 with ECExampleConnector, as it ran: a producer answers empty and names what it wrote; a consumer takes a
part's grid and id, and its engine ends when nobody wrote that id. Prefill and decode as read in the sources of both
engines. What engines hand each other goes through one folder (``--transfer-dir``), as that connector's does.
"""

import asyncio
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from gateway.simulator.fields import Json, JsonObject, flag, integer, mapping, sequence, text
from gateway.simulator.geometry import Fitted
from gateway.simulator.prompt import ImageInput, Prompt
from gateway.simulator.raster import Picture, Raster
from gateway.simulator.refusal import Refusal
from gateway.simulator.settings import SimulatorSettings, TransferRole

_ROOM_POLL_S = 0.005
_GRID = "image_grid_thw"
NO_ROOM = "Disaggregated request received without bootstrap room id."


def folder_of(settings: SimulatorSettings) -> Path:
    """Where engines leave things for each other; there is one whenever a role is set."""
    return Path(settings.transfer_dir or ".")


def is_producer(settings: SimulatorSettings) -> bool:
    """Whether it only encodes pictures."""
    return settings.transfer_role is TransferRole.ENCODER


def grid_of(picture: Picture, merge: int) -> list[Json]:
    """``[time, rows, columns]`` in patches, as a processor reports it."""
    return [1, picture.fitted.rows * merge, picture.fitted.columns * merge]


def write_pictures(prompt: Prompt, settings: SimulatorSettings) -> JsonObject:
    """Leave every picture for consumers; what the answer's ``ec_transfer_params`` says of them."""
    named: JsonObject = {}
    for index, picture in enumerate(prompt.pictures):
        at = folder_of(settings) / f"picture-{picture.identifier}"
        at.write_text(json.dumps({"raster": asdict(picture.raster), "fitted": asdict(picture.fitted)}))
        entry = mapping(named.get(picture.identifier))
        indices = [*sequence(entry.get("item_indices")), index]
        named[picture.identifier] = {
            "item_indices": indices,
            "metadata": {_GRID: grid_of(picture, settings.grid.merge)},
        }
    return named


def read_picture(source: ImageInput, settings: SimulatorSettings) -> Picture | None:
    """The picture that an encoder left under this id; ``None`` where nobody did, which the engine does not survive."""
    at = folder_of(settings) / f"picture-{source.uuid}"
    if source.uuid is None or "/" in source.uuid or not at.is_file():
        return None
    told = json.loads(at.read_text())
    raster = Raster(**{**told["raster"], "mean_rgb": tuple(told["raster"]["mean_rgb"])})
    return Picture(raster, Fitted(**told["fitted"]), source.uuid)


def embedded_part(fields: Mapping[str, Json], pointer: str, settings: SimulatorSettings) -> ImageInput:
    """An ``image_embeds`` part with a grid and an id. Raises Refusal where this engine takes none."""
    if settings.transfer_role not in (TransferRole.CONSUMER, TransferRole.PREFILL, TransferRole.DECODE):
        raise Refusal(400, "You must set `--enable-mm-embeds` to input `image_embeds`", param="image_embeds")
    grid = mapping(fields.get("image_embeds")).get(_GRID)
    if not isinstance(grid, list) or len(grid) != 3 or not isinstance(fields.get("uuid"), str):
        raise Refusal(400, "image_embeds without its grid or uuid is not simulated", param="image_embeds")
    return ImageInput(pointer, None, text(fields.get("uuid")), embedded=True)


def check_mixture(images: Sequence[ImageInput]) -> None:
    """Raises the 400 of pixels beside embeddings."""
    if len({image.embedded for image in images}) > 1:
        raise Refusal(400, "Mixing raw image and embedding inputs is not allowed", param="image_embeds")


def kv_answer(body: Mapping[str, Json], prompt: Prompt, settings: SimulatorSettings) -> Json:
    """What vLLM's prefill says of its blocks, where the request asked it to keep them."""
    if settings.transfer_role is not TransferRole.PREFILL:
        return None
    if not flag(mapping(body.get("kv_transfer_params")).get("do_remote_decode")):
        return None
    return {
        "do_remote_prefill": True,
        "do_remote_decode": False,
        "remote_block_ids": list[Json](range(prompt.length // settings.block_size)),
        "remote_engine_id": "simulated",
        "remote_request_id": uuid.uuid4().hex,
        "remote_host": settings.host,
        "remote_port": 5600,
        "tp_size": 1,
    }


def is_prefilled(body: Mapping[str, Json], prompt: Prompt, settings: SimulatorSettings) -> bool:
    """Whether the blocks come from elsewhere. Raises Refusal for those of another prompt, which would be garbage."""
    told = mapping(body.get("kv_transfer_params"))
    if settings.transfer_role is not TransferRole.DECODE or not flag(told.get("do_remote_prefill")):
        return False
    if len(sequence(told.get("remote_block_ids"))) != prompt.length // settings.block_size:
        raise Refusal(500, "KV blocks of another prompt", "InternalServerError")
    return True


def check_room(body: Mapping[str, Json], settings: SimulatorSettings) -> int | None:
    """SGLang's meeting place of this request; ``None`` where nothing is divided. Raises Refusal without one."""
    if settings.transfer_role not in (TransferRole.PREFILL, TransferRole.DECODE):
        return None
    room = integer(body.get("bootstrap_room"))
    if room is None or not text(body.get("bootstrap_host")):
        raise Refusal(400, NO_ROOM, "BadRequest")
    return room


async def meet(room: int, settings: SimulatorSettings) -> None:
    """A prefill leaves its blocks in the room, a decoder waits for them there."""
    at = folder_of(settings) / f"room-{room}"
    if settings.transfer_role is TransferRole.PREFILL:
        at.touch()
        return
    while not at.exists():  # noqa: ASYNC110  # another process leaves the file; no event tells
        await asyncio.sleep(_ROOM_POLL_S)
    at.unlink()
