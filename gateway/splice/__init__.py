"""Stages *read* and *splice*: changing single values of a JSON body without writing it anew.

Decided here: how a body is parsed without its long strings (the skeleton), and how ranges of its bytes are replaced.
Not decided here: which values change (``dialects`` find them, ``stages.outgoing`` says what they become).
"""
