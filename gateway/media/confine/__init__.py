"""The box that an image worker closes around itself before it reads a stranger's first byte.

Decided here: what a worker can still do once its libraries are loaded: compute, use memory up to its limit, start
threads, read its slab, write its output region, answer on its channel. No file, network, program, process, or other
process's memory. Four layers, each a wall of its own where the kernel has it (``box``): another user, no new
descriptors, Landlock, a system call filter. Not decided here: what the parent does about a worker that misbehaves
(``crew``, ``pool``). Runs in image workers only; ``probe`` also in ``doctor``.
"""

from gateway.media.confine.box import BoxIncomplete, enclose, probe
from gateway.media.confine.limits import follow, limit
from gateway.media.confine.report import BoxReport, Layer, SandboxMode
from gateway.media.confine.user import UnknownUser

__all__ = ["BoxIncomplete", "BoxReport", "Layer", "SandboxMode", "UnknownUser", "enclose", "follow", "limit", "probe"]
