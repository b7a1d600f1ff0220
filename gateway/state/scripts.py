"""The Lua scripts that a shared store runs: files of ``lua/``, the common part put before those of a tenant's budgets.

Decided here: which there are, and the names of keys. A tenant's keys carry the hash tag ``{tenant}``, so that a cluster
keeps them on one node and a script may touch them all; the number after the prefix is the version of what they hold, so
that two versions of the gateway that disagree about it share a server without sharing keys.
"""

from __future__ import annotations

from importlib import resources

from gateway.state.wire import Script
from gateway.types import TenantId

KEYS_VERSION = 1


def _read(name: str) -> str:
    return resources.files("gateway.state").joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")


def _of_tenant(name: str) -> Script:
    return Script.of(name, f"{_read('prelude')}\n{_read(name)}")


TAKE = _of_tenant("take")
FINISH = _of_tenant("finish")
RENEW = _of_tenant("renew")
SWEEP = _of_tenant("sweep")
TELL = _of_tenant("tell")
HOLD = _of_tenant("hold")
BEAT = Script.of("beat", _read("beat"))
SCRIPTS = (TAKE, FINISH, RENEW, SWEEP, TELL, HOLD, BEAT)


def tenant_keys(prefix: str, tenant: TenantId) -> tuple[str, str, str, str, str]:
    """In the order in which the scripts expect them. Braces would end the tag early; a tenant's name has none then."""
    tag = tenant.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
    base = f"{prefix}:{KEYS_VERSION}:{{{tag}}}"
    return f"{base}:leases", f"{base}:held", f"{base}:sums", f"{base}:rates", f"{base}:charged"


def registry_key(prefix: str) -> str:
    """Where replicas stand; a slot of its own."""
    return f"{prefix}:{KEYS_VERSION}:replicas"
