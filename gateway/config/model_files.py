"""A served model's own configuration files, read from a folder that the operator named.

Decided here: which files are looked at, and how large they may be. Not decided here: what they mean (`models.hub`).
"""

from __future__ import annotations

from pathlib import Path

from gateway.models.hub.describe import ModelFiles, image_processor
from gateway.models.hub.reading import ConfigProblem, Section, read_json

# Real ones have some kilobytes; a list of layers makes a few dozen.
_LARGEST_BYTES = 4 << 20


def read_model_files(folder: Path) -> ModelFiles:
    """config.json, and preprocessor_config.json or processor_config.json where there is one.

    Raises `ConfigProblem` naming the file.
    """
    config = _read(folder / "config.json")
    if config is None:
        raise ConfigProblem(f"{folder / 'config.json'}: there is no such file")
    processor = _read(folder / "preprocessor_config.json") or _read(folder / "processor_config.json")
    return ModelFiles(config, None if processor is None else image_processor(processor))


def _read(file: Path) -> Section | None:
    try:
        if not file.is_file():
            return None
        if file.stat().st_size > _LARGEST_BYTES:
            raise ConfigProblem(f"{file}: is larger than {_LARGEST_BYTES} bytes")
        return read_json(file.name, file.read_bytes())
    except OSError as error:
        raise ConfigProblem(f"{file}: cannot be read: {error.strerror}") from None
