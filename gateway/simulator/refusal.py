"""How a request ends other than well; each engine's module renders its own envelope."""


class Refusal(Exception):
    """An answer other than 200.

    `kind` is the engine's `type` string, `param` the field it names (None where the engine names none).
    """

    def __init__(self, status: int, message: str, kind: str = "BadRequestError", param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind
        self.param = param


class QueueFull(Exception):
    """The waiting queue has no place; status and text are the contract's."""


class EngineLost(Exception):
    """The engine core ended while a request was running: an in-stream error, or a 500 before the first byte."""

    MESSAGE = "EngineCore encountered an issue. See stack trace (above) for the root cause."

    def __init__(self) -> None:
        super().__init__(self.MESSAGE)
