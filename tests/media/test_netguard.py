from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import BadMedia, SourceBlocked
from gateway.media.netguard import host_allowed, is_public, is_this_machine, networks, parse_target


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.7",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.19.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::8.8.8.8",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:2::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "2606:4700::1%eth0",
        "ff02::1",
        "not an address",
        "",
    ],
)
def test_closed_addresses(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"]
)
def test_open_addresses(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_no_more_is_open_than_the_registry_says(address: IPv4Address) -> None:
    if is_public(address):
        assert address.is_global or address in networks(["192.0.0.0/24"])[0]
        assert not address.is_multicast


@given(st.ip_addresses(v=6))
def test_ipv6_outside_of_global_unicast_is_closed(address: IPv6Address) -> None:
    if is_public(address):
        assert int(address) >> 125 == 1
        assert not address.is_private


def test_declared_networks_are_open_and_nothing_else() -> None:
    declared = networks(["127.0.0.9/32", "fd12::/16", "64:ff9b::/96"])
    assert is_public("127.0.0.9", declared)
    assert not is_public("127.0.0.1", declared)
    assert not is_public("::ffff:127.0.0.9", declared)
    assert is_public("fd12::1", declared)
    assert is_public("64:ff9b::8.8.8.8", declared)
    assert not is_public("64:ff9b::10.0.0.7", declared)


def test_a_network_must_be_one() -> None:
    with pytest.raises(ValueError, match=r"127\.0\.0\.9/24"):
        networks(["127.0.0.9/24"])


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://h/bkt/a%2Fb.png?sig=Zm9v%2Bbar%2fx%3D%3D&exp=99", "/bkt/a%2Fb.png?sig=Zm9v%2Bbar%2fx%3D%3D&exp=99"),
        ("http://h/k.png?a=&b&a=2&tok=x?y", "/k.png?a=&b&a=2&tok=x?y"),
        ("http://h/3x%2520y.png", "/3x%2520y.png"),
        ("http://h/my photo.png", "/my%20photo.png"),
        ("http://h/s\u00fc\u00df/\u00f6.png", "/s%C3%BC%C3%9F/%C3%B6.png"),
        ("http://h/a/../b/./c//d", "/a/../b/./c//d"),
        ("http://h", "/"),
        ("http://h?x=1", "/?x=1"),
        ("http://h/x?", "/x?"),
        ("http://h/x#frag?y", "/x"),
        ("http://h#frag", "/"),
        ('http://h/"<>{}|^`\\', "/%22%3C%3E%7B%7D%7C%5E%60%5C"),
        ("http://h/100%.png?q=5%&r=%zz&s=%2", "/100%25.png?q=5%25&r=%25zz&s=%252"),
        ("http://h/a?x[]='1'&y=(2);z=!*$,:@~", "/a?x[]='1'&y=(2);z=!*$,:@~"),
        (" http://h/x ", "/x"),
    ],
)
def test_a_target_is_sent_as_it_is_written(url: str, target: str) -> None:
    assert parse_target(url).raw_target == target


_OF_URIS = st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters='#"<>\\^`{|}%')


@given(st.lists(_OF_URIS | st.sampled_from(["%2f", "%2B", "%25"]), max_size=40).map("".join))
def test_what_a_uri_may_hold_is_never_changed(path: str) -> None:
    assert parse_target(f"https://example.com/{path}").raw_target == f"/{path}"


@given(st.text(max_size=40))
def test_any_text_is_a_target_or_a_refusal(text: str) -> None:
    for url in (text, f"http://{text}", f"http://h/{text}"):
        try:
            target = parse_target(url)
        except BadMedia:
            continue
        assert target.raw_target.isascii()
        assert target.raw_target.isprintable()
        assert " " not in target.raw_target
        assert parse_target(target.url).raw_target == target.raw_target
        assert target.host.isascii()


@pytest.mark.parametrize(
    ("url", "scheme", "host", "port"),
    [
        ("HTTP://Example.COM/x", "http", "example.com", 80),
        ("https://example.com:8443/x", "https", "example.com", 8443),
        ("https://example.com:/x", "https", "example.com", 443),
        ("http://b\u00fccher.example/x", "http", "xn--bcher-kva.example", 80),
        ("http://8.8.8.8/x", "http", "8.8.8.8", 80),
        ("http://[2606:4700::1]:81/x", "http", "2606:4700::1", 81),
        ("http://under_score.example.com./x", "http", "under_score.example.com.", 80),
        ("http://1.example/x", "http", "1.example", 80),
    ],
)
def test_hosts_and_ports(url: str, scheme: str, host: str, port: int) -> None:
    target = parse_target(url)
    assert (target.scheme, target.host, target.port) == (scheme, host, port)


def test_the_url_of_a_target_leads_back_to_it() -> None:
    for url in ("http://h/a?b", "https://h:8443/", "http://[2606:4700::1]:81/x", "http://[2606:4700::1]/x"):
        assert parse_target(url).url == url
        assert parse_target(parse_target(url).url) == parse_target(url)


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "127.1",
        "0177.0.0.1",
        "127.0.0.01",
        "0",
        "0x",
        "1.2.3.4.",
        "a.0x1",
        "\uff11\uff12\uff17.0.0.1.1",
    ],
)
def test_numbers_in_disguise_are_blocked(host: str) -> None:
    with pytest.raises(SourceBlocked):
        parse_target(f"http://{host}/x.png")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "FILE:/etc/passwd",
        "../x.png",
        "x.png",
        "",
        "iVBORw0KGgoAAAANSUhEUgAAAcAAAADg",
        "ftp://h/x",
        "gopher://h/x",
        "data:image/png;base64,AA",
        "http:/h/x",
        "http:h",
        "http://",
        "http:///x",
        "http://h/x.png\r\nX-Evil: 1\r\n",
        "http://h/\t",
        "http://h/\x00",
        "http://user@h/x",
        "http://user:pass@h/x",
        "http://h\\@127.0.0.1/x",
        "http://h:0/x",
        "http://h:65536/x",
        "http://h:8o/x",
        "http://h:\u0661/x",
        "http://h h/x",
        "http://h%2e/x",
        "http://-h/x",
        "http://a..b/x",
        "http://" + "a" * 64 + ".example/x",
        "http://[::1/x",
        "http://[]/x",
        "http://[::1]x/",
        "http://[v1.a]/",
        "http://[fe80::1%eth0]/",
        "http://[::ffff:1%1.\u212a.5]",
        "http://300.1.1.1/x",
        "http://h/\ud800",
        "http://h/" + "a" * 9_000,
    ],
)
def test_what_is_no_http_url_is_refused(url: str) -> None:
    with pytest.raises(BadMedia) as caught:
        parse_target(url)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("host", "patterns", "expected"),
    [
        ("a.example.com", ["*.example.com"], True),
        ("a.b.example.com", ["*.example.com"], True),
        ("example.com", ["*.example.com"], False),
        ("evilexample.com", ["*.example.com"], False),
        (".example.com", ["*.example.com"], False),
        ("example.com", ["example.com"], True),
        ("EXAMPLE.com.", ["example.COM"], True),
        ("example.com.evil.test", ["example.com", "*.example.com"], False),
        ("a.test", [], False),
        ("a.test", ["b.test", "a.test"], True),
    ],
)
def test_allow_lists(host: str, patterns: list[str], expected: bool) -> None:
    assert host_allowed(host, patterns) is expected


@pytest.mark.parametrize(
    ("name", "means_it"),
    [("localhost", True), ("a.b.localhost", True), ("localhost.example", False), ("alocalhost", False)],
)
def test_names_of_this_machine(name: str, means_it: bool) -> None:
    assert is_this_machine(name) is means_it
