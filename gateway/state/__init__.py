"""Where budgets live: in this process (`memory`), or shared by replicas; and the line before them (`budgets`).

Decided here: how a waiter sleeps and is woken, and what an outage of the store means. Not decided here: the rules of
reservations and queues (`quota`).
"""
