"""Stages *fetch* and *prepare*: images, videos and sounds, from a reference to facts, from a plan to prepared bytes.

Decided here: how a source is got and told what it is, who is next for the workers, and what is kept of their work. Not
decided here: what becomes of an image (``models``, ``policy``). Pixels are touched in worker processes only.
"""
