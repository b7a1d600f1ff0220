"""Changing single values of a JSON body without re-writing it: parse a skeleton, replace spans, send chunks."""
