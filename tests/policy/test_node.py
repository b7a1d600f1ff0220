from __future__ import annotations

import pytest

from gateway.policy.node import Entry, ListNode, MappingNode, Node, Problem, ScalarNode, kind_of, nearest, shortened


@pytest.mark.parametrize(
    ("node", "name"),
    [
        (ListNode(1, ()), "an empty list"),
        (ListNode(1, (ScalarNode(1, 2),)), "a list"),
        (MappingNode(1, (Entry("a", 1, ScalarNode(1, 1)),)), "a mapping"),
        (ScalarNode(1, None), "nothing"),
        (ScalarNode(1, value=True), "the boolean true"),
        (ScalarNode(1, 1.5), "the number 1.5"),
        (ScalarNode(1, "word"), "'word'"),
    ],
)
def test_what_stands_in_the_file_is_named(node: Node, name: str) -> None:
    assert kind_of(node) == name


def test_a_problem_reads_as_place_path_and_message() -> None:
    assert str(Problem("a.yaml", 3, "rules.x", "unknown key")) == "a.yaml:3 rules.x: unknown key"
    assert str(Problem("a.yaml", 1, "", "is not YAML")) == "a.yaml:1: is not YAML"


def test_long_text_is_cut_in_messages() -> None:
    assert shortened("k" * 41) == "k" * 40 + "..."
    assert shortened("k" * 40) == "k" * 40


def test_only_a_near_word_is_suggested() -> None:
    assert nearest("max_image", ["max_images", "hosts"]) == "; did you mean max_images?"
    assert nearest("zebra", ["max_images", "hosts"]) == ""
