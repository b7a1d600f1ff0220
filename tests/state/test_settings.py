from __future__ import annotations

import dataclasses

from gateway.config.settings import RedisConfig
from gateway.state.settings import RedisMode, RedisSettings

# Whether routing shares hints is no matter of how the store is reached.
NOT_THE_STORES = {"share_hints"}


def test_the_store_is_told_every_setting_and_nothing_else() -> None:
    told = {field.name for field in dataclasses.fields(RedisSettings)}
    assert told == {field.name for field in dataclasses.fields(RedisConfig)} - NOT_THE_STORES


def test_its_defaults_are_those_of_the_settings() -> None:
    config, own = RedisConfig(url="redis://a"), RedisSettings("redis://a")
    for field in dataclasses.fields(RedisSettings):
        assert getattr(own, field.name) == getattr(config, field.name), field.name


def test_every_mode_can_be_chosen() -> None:
    (choices,) = (field.metadata["choices"] for field in dataclasses.fields(RedisConfig) if field.name == "mode")
    assert set(choices) == set(RedisMode)
