"""Exactly how much of a prompt a backend holds: its KV blocks as it publishes them, against the request's own.

Pure. A prompt becomes a chain of 64-bit block hashes (`chain`), what a backend's events tell becomes a table of them
(`index`, kept small by `table`), and the longest run from the start is what a prefix cache saves. Not decided here: how
events arrive and whether they are up to date (`upstream.kv_events`), what is made of the answer (`routing.decide`).
"""
