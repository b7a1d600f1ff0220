"""Files of a served model: which are read, and what is said where they are not there or not readable."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.model_files import read_model_files
from gateway.models.hub.reading import ConfigProblem


def test_both_kinds_of_processor_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "qwen3_vl"}')
    assert read_model_files(tmp_path).processor is None
    (tmp_path / "processor_config.json").write_text('{"image_processor": {"max_pixels": 2}}')
    found = read_model_files(tmp_path).processor
    assert found is not None
    assert found.whole("max_pixels") == 2
    (tmp_path / "preprocessor_config.json").write_text('{"max_pixels": 1}')
    found = read_model_files(tmp_path).processor
    assert found is not None
    assert found.whole("max_pixels") == 1


def test_faults_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigProblem, match=r"config\.json: there is no such file"):
        read_model_files(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ConfigProblem, match=r"config\.json: is not JSON"):
        read_model_files(tmp_path)
    (tmp_path / "config.json").write_bytes(b" " * (5 << 20))
    with pytest.raises(ConfigProblem, match=r"config\.json: is larger than"):
        read_model_files(tmp_path)
    (tmp_path / "config.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ConfigProblem, match=r"config\.json: is not JSON"):
        read_model_files(tmp_path)
