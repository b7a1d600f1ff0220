from __future__ import annotations

import hashlib

from gateway.state.wire import Command, Script, StoreUnavailable

SCRIPT = Script.of("one", "return 1")


def test_a_script_is_run_by_what_redis_calls_it() -> None:
    command = Command.run(SCRIPT, ("a", "b"), 7, "x", b"\x00")
    assert SCRIPT.sha1 == hashlib.sha1(b"return 1").hexdigest()
    assert command.words == ("EVALSHA", SCRIPT.sha1, 2, "a", "b", 7, "x", b"\x00")


def test_where_it_is_unknown_it_is_sent_whole() -> None:
    assert Command.run(SCRIPT, ("a",), 7).whole.words == ("EVAL", "return 1", 1, "a", 7)


def test_being_unavailable_has_a_word_for_metrics_and_a_sentence_for_people() -> None:
    assert str(StoreUnavailable("timeout", "no answer within 1 s")) == "timeout: no answer within 1 s"
    assert str(StoreUnavailable("closed")) == "closed"
