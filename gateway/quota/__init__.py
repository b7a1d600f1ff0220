"""Budgets and waiting for them (stage *reserve*), as pure state: time is an argument, nobody is woken here.

`claim` is what a request asks for, `gcra` the arithmetic of rates, `store` what any store of budgets does, `queue` who
waits and who is next, `outlook` and `wait` how long it will take, `refusal` and `standing` what a client is told. Not
decided here: limits (`policy`), how a waiter sleeps and where the state lives (`state`).
"""
