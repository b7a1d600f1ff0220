"""Let torchvision's general wheel be imported beside a CPU-only torch.

usage: torchvision_without_cuda.py SITE_PACKAGES

Its compiled operators are linked to CUDA and do not load here, and `import torchvision` fails where it registers rules
for them. After this they are registered only when they are there; the transforms that image processors use are plain
torch and need none of them. A second run changes nothing; a file that is not torchvision 0.28.0's is an error.
"""

import sys
from pathlib import Path

REGISTRATIONS = "    _autograd_registrations,\n    _meta_registrations,\n"
IMPORT = "from torchvision import (\n"
GUARDED = (
    "if extension._has_ops():\n    from torchvision import _autograd_registrations, _meta_registrations\n" + IMPORT
)


def main(site_packages: str) -> None:
    """Rewrite `torchvision/__init__.py` in place."""
    path = Path(site_packages, "torchvision", "__init__.py")
    source = path.read_text(encoding="utf-8")
    if GUARDED in source:
        return
    if source.count(IMPORT + REGISTRATIONS) != 1:
        sys.exit(f"{path} is not the file of torchvision 0.28.0")
    path.write_text(source.replace(IMPORT + REGISTRATIONS, GUARDED), encoding="utf-8")


main(*sys.argv[1:])
