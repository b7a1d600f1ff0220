"""The conversation that the value benchmark holds: what each turn repeats, and that nobody has seen its pictures."""

from __future__ import annotations

import base64
import json
from itertools import pairwise

from benchmarks.conversation import fresh, turn_body


def test_every_turn_repeats_the_one_before_it() -> None:
    urls = [fresh(b"file", f"mark{number}") for number in range(2)]
    turns = [json.loads(turn_body("m", urls, turn, max_tokens=1)) for turn in range(4)]
    for earlier, later in pairwise(turns):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
    parts = [part for message in turns[3]["messages"] for part in message["content"] if isinstance(part, dict)]
    assert [part["image_url"]["url"] for part in parts if part["type"] == "image_url"] == urls
    assert [len(turn["messages"]) for turn in turns] == [2, 4, 6, 8]
    assert turns[0]["max_tokens"] == 1


def test_a_mark_behind_the_end_makes_another_file_of_the_same_picture() -> None:
    one, other = fresh(b"\xff\xd8\xff\xd9", "a"), fresh(b"\xff\xd8\xff\xd9", "b")
    assert base64.b64decode(one.partition(",")[2]) == b"\xff\xd8\xff\xd9a"
    assert one != other
