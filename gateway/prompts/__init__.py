"""Exact text tokens: the served model's own chat template and tokenizer, where the operator configured them.

Decided here: how a chat request becomes the prompt that an engine would make of it, and how many tokens that has. Not
decided here: what images cost (`models`), and what an estimate is used for. Without a configured tokenizer nothing of
this is loaded, and text is estimated by its bytes.
"""
