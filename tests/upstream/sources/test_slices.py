"""What EndpointSlices say."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.upstream.sources.slices import Endpoint, NoSuchPort, endpoints
from tests.upstream.sources.kubernetes_api import endpoint, endpoint_slice

JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["endpoints", "addresses", "conditions", "ports", "port", "name", "metadata", "labels"]),
            inner,
            max_size=4,
        )
    ),
)


@pytest.mark.parametrize(
    ("conditions", "counts"),
    [
        ({}, True),
        ({"ready": True}, True),
        ({"ready": False}, False),
        ({"ready": True, "serving": True, "terminating": True}, False),
        ({"ready": False, "serving": True, "terminating": False}, False),
    ],
)
def test_conditions(conditions: dict[str, bool], counts: bool) -> None:
    assert bool(endpoints([endpoint_slice("s", endpoint("p", "10.0.0.1", **conditions))], "http")) is counts


def test_a_dual_stack_pod_is_one_backend_by_its_ipv4_address() -> None:
    six = endpoint_slice("six", endpoint("p", "fd00::1"), addressType="IPv6")
    four = endpoint_slice("four", endpoint("p", "10.0.0.1"))
    assert endpoints([six, four], "http") == [Endpoint("p", "10.0.0.1", 8000)]
    assert endpoints([six], "http") == [Endpoint("p", "fd00::1", 8000)]


def test_an_endpoint_without_a_pod_is_called_by_its_address() -> None:
    assert endpoints([endpoint_slice("s", {"addresses": ["10.0.0.9"]})], "")[0].name == "10.0.0.9:8000"


def test_ports_by_name_number_or_being_alone() -> None:
    two = [{"name": "http", "port": 8000}, {"name": "zmq", "port": 5557}]
    each = endpoint_slice("s", endpoint("p", "10.0.0.1"), ports=two)
    assert [endpoints([each], wanted)[0].port for wanted in ("http", "zmq", "9000")] == [8000, 5557, 9000]
    for wanted in ("", "grpc"):
        with pytest.raises(NoSuchPort, match="ports: http, zmq"):
            endpoints([each], wanted)
    nobody = endpoint_slice("s", endpoint("p", "10.0.0.1", ready=False), ports=[])
    assert endpoints([nobody], "http") == [], "a slice of nobody need not have the port"


def test_annotations_win_over_labels() -> None:
    each = endpoint_slice("s", endpoint("p", "10.0.0.1"))
    each["metadata"]["labels"] |= {"vlm-gateway/engine": "vllm", "vlm-gateway/role": "full", "app": "x"}
    each["metadata"]["annotations"] = {"vlm-gateway/engine": "sglang"}
    assert endpoints([each], "")[0].options == {"engine": "sglang", "role": "full"}


@settings(max_examples=30)
@given(
    st.lists(st.dictionaries(st.sampled_from(["endpoints", "ports", "metadata", "addressType"]), JSON_LIKE), max_size=3)
)
def test_no_slice_breaks_the_reading(slices: list[dict[str, object]]) -> None:
    with suppress(NoSuchPort):
        endpoints(slices, "http")  # type: ignore[arg-type]  # anything that a server may send
