from __future__ import annotations

import pytest

from gateway.config.settings import IdentityConfig, MediaConfig, RedisConfig
from gateway.config.store_address import redis_problems, shared_cache_problems


@pytest.mark.parametrize(
    "config",
    [
        RedisConfig(),
        RedisConfig(url="redis://localhost"),
        RedisConfig(url="redis://user:pass%2Fword@10.0.0.1:6380/2"),
        RedisConfig(
            url="rediss://[::1]:6379", tls_ca_file="ca.pem", tls_certificate_file="c.pem", tls_key_file="k.pem"
        ),
        RedisConfig(url="unix:///run/redis/redis.sock?db=1", password_file="secret"),
        RedisConfig(url="redis://a:7000", mode="cluster", nodes=("b:7000", "[::1]:7000")),
        RedisConfig(url="redis://a:26379/3", mode="sentinel", nodes=("b:26379",)),
    ],
)
def test_usable_addresses_are_taken(config: RedisConfig) -> None:
    assert redis_problems(config) == []


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (RedisConfig(nodes=("a:1",)), "redis.nodes: needs redis.url"),
        (RedisConfig(url="http://a"), "redis.url: must begin with"),
        (RedisConfig(url="localhost:6379"), "redis.url: must begin with"),
        (RedisConfig(url="redis://"), "redis.url: names no host"),
        (RedisConfig(url="unix://"), "redis.url: names no socket"),
        (RedisConfig(url="redis://a:99999"), "redis.url: has no usable host and port"),
        (RedisConfig(url="redis://a/x"), "redis.url: the database must be a number"),
        (RedisConfig(url="redis://a?socket_timeout=1"), "redis.url: unknown option socket_timeout"),
        (RedisConfig(url="unix:///a", mode="cluster"), "redis.mode: a unix socket"),
        (RedisConfig(url="redis://a", nodes=("b:1",)), "redis.nodes: one server"),
        (RedisConfig(url="redis://a", mode="cluster", nodes=("b",)), "redis.nodes.0: must be host:port"),
        (RedisConfig(url="redis://a/1", mode="cluster"), "redis.url: a cluster has database 0"),
        (RedisConfig(url="redis://a", password="p", password_file="f"), "redis.password_file: stands beside"),
        (RedisConfig(url="redis://a", tls_ca_file="f"), "redis.tls_ca_file: TLS needs"),
        (RedisConfig(url="rediss://a", tls_key_file="f"), "redis.tls_certificate_file: certificate and key"),
        (RedisConfig(url="redis://a", prefix="a{b}"), "redis.prefix: must be a word"),
        (RedisConfig(url="redis://[a", mode="cluster"), "redis.url: has no usable host"),
    ],
)
def test_mistakes_are_named_and_no_secret_is_repeated(config: RedisConfig, named: str) -> None:
    (problem,) = redis_problems(config)
    assert problem.startswith(f"settings: {named}")


def test_a_password_in_the_address_is_in_no_problem() -> None:
    config = RedisConfig(url="redis://user:hunter2@a:0x/y?z=1", mode="cluster", nodes=("b",))
    assert not any("hunter2" in problem for problem in redis_problems(config))


def test_shared_images_need_an_address_and_a_secret() -> None:
    off, on = MediaConfig(), MediaConfig(shared_cache_bytes=1 << 30)
    own = MediaConfig(shared_cache_bytes=1 << 30, shared_cache_url="redis://cache")
    nobody, redis, secret = RedisConfig(), RedisConfig(url="redis://a"), IdentityConfig(secret="s" * 32)
    assert shared_cache_problems(off, nobody, IdentityConfig()) == []
    assert shared_cache_problems(on, redis, secret) == shared_cache_problems(own, nobody, secret) == []
    for problems, named in (
        (shared_cache_problems(on, nobody, secret), "media.shared_cache_bytes: needs redis.url"),
        (shared_cache_problems(on, redis, IdentityConfig()), "media.shared_cache_bytes: needs identity.secret"),
        (shared_cache_problems(MediaConfig(shared_cache_url="http://a"), nobody, secret), "media.shared_cache_url: "),
    ):
        assert len(problems) == 1
        assert named in problems[0]
