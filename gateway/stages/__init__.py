"""What the stages of a journey do, one room each, between the order (``journey``, ``delivery``) and the packages.

Decided in each: how policy, model and facts meet at that point of a request. Not decided here: the order, anything a
package below decides. Nothing in here knows a loop, a clock or the shell but through ``ports``.
"""
