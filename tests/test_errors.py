"""The error tree: what its classes promise to clients, SDKs, metrics and documentation."""

from __future__ import annotations

import re

import pytest

import gateway.errors
from gateway.errors import (
    BackendLost,
    Blame,
    GatewayBug,
    GatewayError,
    NotTaken,
    Rejected,
    TooManyImages,
    all_errors,
)

ERRORS = all_errors()


def test_codes_are_unique_words_that_can_be_metric_labels() -> None:
    codes = [error.code for error in ERRORS]
    assert len(set(codes)) == len(codes)
    assert [code for code in codes if not re.fullmatch(r"[a-z]+(_[a-z]+)*", code)] == []


@pytest.mark.parametrize("error", ERRORS)
def test_each_class_says_its_own_sentence(error: type[GatewayError]) -> None:
    assert "code" in vars(error)
    assert "summary" in vars(error)
    assert re.fullmatch(r"[A-Z].*\.", error.summary)


@pytest.mark.parametrize("error", ERRORS)
def test_the_status_says_whose_fault_it_is(error: type[GatewayError]) -> None:
    """501 is the one refusal of a client's request that is our own lack."""
    clients = {Blame.CLIENT, Blame.TENANT}
    assert (error.status < 500 or error.status == 501) == (error.blame in clients)
    assert (error.status == 429) == (error.blame is Blame.TENANT)


@pytest.mark.parametrize("error", ERRORS)
def test_blame_is_decided_once_per_branch(error: type[GatewayError]) -> None:
    parents = [parent for parent in error.__mro__[1:] if issubclass(parent, GatewayError)]
    inside_a_branch = len(parents) >= 2
    assert not (inside_a_branch and "blame" in vars(error))


def test_what_may_have_run_is_not_sent_again_by_an_sdk() -> None:
    forbidden = {error.code for error in ERRORS if error.should_retry is False}
    assert forbidden == {"backend_lost", "backend_timeout", "drain_ended", "image_worker_lost"}


def test_the_tree_is_listed_from_the_root_down() -> None:
    assert ERRORS[0] is GatewayError
    for place, error in enumerate(ERRORS[1:], start=1):
        assert error.__base__ in ERRORS[:place]


def test_the_tree_is_drawn_in_full_in_the_docstring() -> None:
    drawn = gateway.errors.__doc__ or ""
    assert [error.__name__ for error in ERRORS if not re.search(rf"\b{error.__name__}\b", drawn)] == []


def test_an_error_without_words_uses_its_summary() -> None:
    error = TooManyImages()
    assert (error.message, str(error)) == (TooManyImages.summary, TooManyImages.summary)
    assert (error.part, error.rule, error.detail, error.retry_after_s) == (None, None, None, None)


def test_the_private_detail_is_not_in_the_public_text() -> None:
    error = BackendLost("The connection was lost.", detail="10.0.0.7:8000 reset")
    assert "10.0.0.7" not in str(error)
    assert error.detail == "10.0.0.7:8000 reset"


def test_the_first_to_name_the_part_is_right() -> None:
    error = Rejected(rule="max_images")
    assert error.at("messages.1.content.0") is error
    error.at("messages")
    assert (error.part, error.rule) == ("messages.1.content.0", "max_images")


def test_what_a_backend_did_not_take_is_no_answer_to_a_client() -> None:
    assert not issubclass(NotTaken, GatewayError)
    refused = NotTaken("refused", "queue full", response=b"503")
    assert (refused.reason, refused.detail, refused.response) == ("refused", "queue full", b"503")
    assert str(refused) == "refused: queue full"
    assert GatewayBug.status == 500
