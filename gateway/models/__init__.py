"""What an image, a text and a token cost in each model: exact image tokens, KV bytes, a text estimate, rough FLOPs.

Decided here: how pixels become tokens (`families/`), which numbers a checkpoint has (`catalog`, `checkpoints.toml`),
and which size fits a cap. Not decided here: which cap applies (policy), what is refused (the journey), how pixels are
resized (media). Pure: nothing here reads a clock, a file beyond the packaged table, or the network.
"""
