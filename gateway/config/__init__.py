"""How the gateway is told what to do: one typed source of settings, files, environment, flags, and policy documents.

Decided here: names, defaults, bounds and precedence (defaults < file < environment < flags). Not decided here: what a
setting makes any other package do.
"""
