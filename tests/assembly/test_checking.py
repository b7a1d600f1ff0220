"""Files that settings name are looked at before anything starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gateway.assembly.checking import file_problems
from gateway.config.backends import BackendConfig, SourceConfig
from gateway.config.settings import ServerSettings, Settings


def test_nothing_named_nothing_wrong(tmp_path: Path) -> None:
    server = ServerSettings(unix_socket=str(tmp_path / "gateway.sock"))
    settings = replace(Settings(), server=server, backends=(BackendConfig("http://127.0.0.1:9"),))
    assert file_problems(settings) == []
    assert not (tmp_path / "gateway.sock").exists()


def test_all_problems_are_told_with_their_place(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone" / "file")
    settings = replace(
        Settings(),
        server=ServerSettings(unix_socket=gone, tls_cert_file=gone),
        backends=tuple(BackendConfig(f"https://{name}", tls_ca_file=gone) for name in ("a", "b")),
        sources=(SourceConfig(f"file:{gone}"),),
    )
    places = [problem.partition(gone)[0] for problem in file_problems(settings)]
    assert places == [
        "sources.0.url: ", "server.tls_cert_file: ", "server.unix_socket: ", "backend a: ", "backend b: ",
    ]  # fmt: skip
