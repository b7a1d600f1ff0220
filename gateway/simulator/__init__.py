"""The stand-in engine: a real HTTP process that speaks vLLM's or SGLang's contract without a GPU.

It decodes every picture it is sent and counts tokens from that raster with arithmetic of its own, so that agreement
between the gateway's estimate and the `usage` returned here is evidence and not an echo. It is a program beside the
gateway: it imports nothing of it, and the rule of one door per library does not bind it.

Facts about the engines (status codes, texts, metric names, defaults) are those observed on vLLM 0.32.0 and read in
SGLang 0.5.23.
"""
