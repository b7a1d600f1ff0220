"""What is odd is in the log once, as a warning."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gateway.assembly.advising import warn
from gateway.config.settings import RedisConfig, ServerSettings, Settings
from gateway.policy.policyset import builtin_policies
from gateway.telemetry.log import JsonLog


def test_each_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    settings = replace(
        Settings(),
        server=ServerSettings(host="10.0.0.1", admin_host="10.0.0.1"),
        redis=RedisConfig(url="redis://store.test"),
    )
    log = JsonLog("info")
    warn(settings, builtin_policies(), {}, log, 0.0)
    warn(Settings(), None, {}, log, 0.0)
    log.close()
    out, err = capfd.readouterr()
    lines = [json.loads(line) for line in (out + err).splitlines()]
    assert [(line["level"], line["event"], line["setting"]) for line in lines] == [
        ("warning", "odd_setting", "server.admin_host"),
        ("warning", "odd_setting", "identity.secret"),
        ("warning", "odd_setting", "server.host"),
    ]
