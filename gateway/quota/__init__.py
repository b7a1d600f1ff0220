"""Budgets and waiting for them (stage *reserve*), as pure state: time is an argument, nobody is woken here.

`ledger` knows what is held, `queue` who waits and who is next, `wait` how long it will take. Not decided here: limits
(`policy`), how a waiter sleeps and where the state lives (`state`).
"""
