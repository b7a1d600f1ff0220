from __future__ import annotations

import re

from benchmarks.legibility import shipped_tasks
from benchmarks.legibility_page import PAGE, page


def row(policy: str, task: str, tokens: int, ours: float | None) -> dict[str, object]:
    engine = None if ours is None else ours + 0.001
    delivered = {"delivered": "64x32", "format": "png", "tokens": tokens}
    return {
        "policy": policy,
        "task": task,
        "kind": "scan",
        "original": 0.0,
        **delivered,
        "ours": ours,
        "engine": engine,
    }


def test_tasks_that_come_to_the_same_are_one_row() -> None:
    tasks = [
        row("a", "chat", 2, 0.01),
        row("b", "chat", 1_000, None),
        row("a", "ocr", 2, 0.01),
        row("c", "ocr", 2, 0.01),
    ]
    kinds = {"scan": {"size": "90x60", "letters": 12}}
    text = page({"model": "m", "reader": "tesseract 5", "kinds": kinds, "tasks": tasks})
    rows = [line for line in text.splitlines() if line.startswith("|")][2:]
    assert rows == [
        "| b: chat | 64x32 png | 1,000 | – | – |",
        "| a: chat, ocr; c: ocr | 64x32 png | 2 | 1.0 | 1.1 |",
    ]
    assert "90x60, 12 letters; original 0.0 %." in text


def test_the_page_has_every_shipped_task_in_every_kind() -> None:
    text = PAGE.read_text(encoding="utf-8")
    kinds = text.split("\n## ")[1:]
    assert len(kinds) >= 4
    wanted = {(task.policy, task.task) for task in shipped_tasks()}
    for kind in kinds:
        cells = re.findall(r"^\| ([\w-]+: [^|]+) \|", kind, re.MULTILINE)
        groups = [group for cell in cells for group in cell.split("; ")]
        listed = {(group.partition(": ")[0], name) for group in groups for name in group.partition(": ")[2].split(", ")}
        assert listed == wanted
