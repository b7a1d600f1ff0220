"""A reverse proxy for chat APIs that makes multimodal requests cheap, fair and safe before a GPU sees them.

The listing of this package is the journey of a request: `journey.py` knows the order of the stages, each package holds
one of them. See docs/architecture.md.
"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("vlm-gateway")
except PackageNotFoundError:  # a checkout on the path that was never installed
    __version__ = "0+uninstalled"
