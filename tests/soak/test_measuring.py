from __future__ import annotations

import os

from tests.soak.measuring import anonymous_bytes, counted, sample, totals

NOBODY = 1 << 22


def test_one_look_at_a_process() -> None:
    seen = sample(7.0, os.getpid(), [os.getpid()], {"body_memory_bytes": 5.0})
    assert seen.gateway_bytes > 1_000_000
    assert seen.workers_bytes > 1_000_000
    assert seen.descriptors >= 3
    assert seen.threads >= 1
    assert (seen.at_s, seen.slab_bytes) == (7.0, 5.0)


def test_a_process_that_is_gone_has_nothing() -> None:
    assert (anonymous_bytes(NOBODY), counted(NOBODY, "fd")) == (0, 0)


def test_samples_of_one_metric_are_summed() -> None:
    text = '# TYPE vlmgw_a gauge\nvlmgw_a{b="1"} 2\nvlmgw_a{b="2"} 3.5\nvlmgw_c_total 1e3\nother 1\n'
    assert totals(text) == {"a": 5.5, "c_total": 1000.0}
