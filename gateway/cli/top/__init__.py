"""``vlm-gateway top``: what gateways do now, in a terminal, read from their admin ports' metrics."""
