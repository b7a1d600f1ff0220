"""Loaded by the engine (`--logits-processors pace:Pace`): a request with `"vllm_xargs": {"pace_ms": 20}` gets no more
than a token every 20 ms.

The tiny models make a thousand tokens a second, as many as vLLM's front end can take off its engine on a core of its
own. With fewer cores it falls behind, and until the generation is over it neither answers nor notices that a client has
left. Models of real size leave it the time that this leaves it.
"""

import time

from torch import Tensor
from vllm import SamplingParams
from vllm.v1.sample.logits_processor import AdapterLogitsProcessor, RequestLogitsProcessor


class Pace(AdapterLogitsProcessor):
    """Changes no logits; those of a request that asks for it come later."""

    def is_argmax_invariant(self) -> bool:
        # An invariant one would be left out where sampling is greedy.
        return False

    def new_req_logits_processor(self, params: SamplingParams) -> RequestLogitsProcessor | None:
        pace_ms = (params.extra_args or {}).get("pace_ms")
        if pace_ms is None:
            return None

        def wait(_output_ids: list[int], logits: Tensor) -> Tensor:
            time.sleep(pace_ms / 1000)
            return logits

        return wait
