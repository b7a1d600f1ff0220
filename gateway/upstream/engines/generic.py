"""Any server that answers chat completions: nothing is assumed of it beyond that."""

from __future__ import annotations

from gateway.types import EngineKind
from gateway.upstream.engines.contract import MODELS_PATH, Documents, EngineFacts, EngineLoad
from gateway.upstream.engines.reading import model_cards, whole, words


class Generic:
    kind = EngineKind.GENERIC
    refuses_in_streams = False
    identity_paths = (MODELS_PATH,)
    facts_paths = (MODELS_PATH,)
    health_paths = ("/health", MODELS_PATH)
    load_paths: tuple[str, ...] = ()
    waking_path: str | None = None
    reports_load = False

    def recognises(self, _documents: Documents) -> bool:
        return True

    def facts(self, documents: Documents) -> EngineFacts:
        cards = model_cards(documents.get(MODELS_PATH))
        lengths = [length for card in cards if (length := whole(card.get("max_model_len"))) is not None]
        return EngineFacts(
            models=tuple(name for card in cards if (name := words(card.get("id"))) is not None),
            model_root=words(cards[0].get("root")) if cards else None,
            context_tokens=max(lengths, default=None),
        )

    def load(self, _path: str, _document: bytes) -> EngineLoad:
        return EngineLoad()

    def report(self, _header: str) -> EngineLoad | None:
        return None

    def refusal(self, _status: int, _head: bytes) -> str | None:
        """An unknown server's 503 does not prove that nothing ran."""
        return None

    def stream_refusal(self, _event: bytes) -> str | None:
        return None
