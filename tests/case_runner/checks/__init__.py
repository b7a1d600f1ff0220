"""The checks of ``expect``, one function a key, in explicit tables."""
