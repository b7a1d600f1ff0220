"""How a process is put together: settings become arguments, snapshots become gauges, files become a reload.

Used by ``app`` alone. Not decided here: the order of starting and stopping.
"""
