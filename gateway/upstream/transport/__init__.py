"""The only HTTP client towards engines: send a request once, and know for certain what became of it.

What this package guarantees, each with a test on real sockets:

* One call, one request on the wire. aiohttp repeats idempotent requests after a lost connection; errors leave
  ``no_resend`` as types that it does not repeat. Redirects, cookies, decompression, environment proxies, default
  headers: all off.
* An idle connection that the engine has closed is never written to: a pooled one is looked at (one ``poll``) first. Nor
  one that the engine may be about to close: the kernel tells how long ago it sent its last byte.
* *Not taken* is claimed only with proof: no connection, or the kernel had not accepted the whole body (the transport's
  own buffer is kept at zero while a body is sent), or a refusal the engine documents. Whatever else goes wrong raises
  BackendLost or BackendTimeout, because the request may have run.
* Bytes of the response are handed on as they come; its end is its proper end or BackendLost.
* Closing before the end cuts the connection at once, unsent bytes included, so the engine sees that nobody waits.
"""
