from __future__ import annotations

import msgspec

from gateway.media.confine.report import BoxReport, Layer


def test_every_layer_has_a_line() -> None:
    report = BoxReport({"user": "runs as user 7"}, {"landlock": "Function not implemented"})
    assert report.lines() == {
        "user": "runs as user 7",
        "landlock": "missing: Function not implemented",
        "descriptors": "off",
        "seccomp": "off",
    }
    assert set(BoxReport().lines().values()) == {"off"}


def test_it_crosses_the_channel() -> None:
    report = BoxReport({Layer.USER.value: "a"}, {Layer.SECCOMP.value: "b"})
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(report), type=BoxReport) == report
