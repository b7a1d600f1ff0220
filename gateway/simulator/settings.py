"""What the simulator can be told. Every field is a flag of the same name (`--kv-tokens` sets `kv_tokens`)."""

from dataclasses import dataclass, field
from enum import StrEnum

from gateway.simulator.geometry import GRIDS, Family, Grid, family_of_model


class EngineKind(StrEnum):
    VLLM = "vllm"
    SGLANG = "sglang"


class TransferRole(StrEnum):
    """Which part of requests this engine computes. vLLM: all four; SGLang: prefill and decode."""

    ENCODER = "encoder"
    CONSUMER = "consumer"
    PREFILL = "prefill"
    DECODE = "decode"


class SigtermMode(StrEnum):
    """What happens to running requests at SIGTERM without a grace time. Both were seen on vLLM 0.32.0: they end with
    an in-stream error, or no byte comes any more and the process stays."""

    CUT = "cut"
    HANG = "hang"


class SettingsError(ValueError):
    """A combination of settings that no engine would start with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorSettings:
    host: str = field(default="127.0.0.1", metadata={"help": "address to listen on"})
    unix_socket: str | None = field(default=None, metadata={"help": "path to listen on as well, as vLLM's --uds"})
    port: int = field(default=8000, metadata={"help": "port; 0 takes a free one, printed as JSON on standard output"})
    engine: EngineKind = field(default=EngineKind.VLLM, metadata={"help": "whose contract to speak"})
    served_model_name: str = field(default="Qwen/Qwen3-VL-8B-Instruct", metadata={"help": "the model's id"})
    model_root: str | None = field(default=None, metadata={"help": "`root` in /v1/models; the id when not given"})
    family: Family | None = field(default=None, metadata={"help": "geometry; guessed from the model's name"})
    max_model_len: int = field(default=32_768, metadata={"help": "context length in tokens"})
    max_pixels: int | None = field(default=None, metadata={"help": "cap as area; the family's when not given"})
    min_pixels: int | None = field(default=None, metadata={"help": "floor as area; the family's when not given"})
    video_frames: int = field(default=32, metadata={"help": "frames taken of a list of frames; -1 = all"})
    video_fps: float = field(default=1.0, metadata={"help": "how many of them a second they are taken to be"})
    limit_images: int = field(default=999, metadata={"help": "pictures per request"})
    max_image_pixels: int = field(default=178_956_970, metadata={"help": "larger rasters are refused as bombs (500)"})
    max_num_seqs: int = field(default=256, metadata={"help": "requests computed at once"})
    max_num_queued_reqs: int | None = field(default=None, metadata={"help": "waiting requests before 503"})
    kv_tokens: int = field(default=262_144, metadata={"help": "KV capacity in tokens"})
    block_size: int = field(default=16, metadata={"help": "tokens in a KV block"})
    encoder_cache_tokens: int = field(default=16_384, metadata={"help": "vision embeddings kept, in tokens"})
    mm_cache_bytes: int = field(default=4 << 30, metadata={"help": "processed pictures kept, which uuid hits need"})
    pooling: bool = field(default=False, metadata={"help": "vLLM: embed, score and classify instead of generating"})
    api_key: str | None = field(default=None, metadata={"help": "bearer key for paths under /v1"})
    prompt_tokens_details: bool = field(default=True, metadata={"help": "fill usage.prompt_tokens_details"})
    request_id_headers: bool = field(default=False, metadata={"help": "echo X-Request-Id in responses"})
    verify_content_hash: bool = field(default=True, metadata={"help": "SGLang: check content_hash against the bytes"})
    transfer_role: TransferRole | None = field(default=None, metadata={"help": "part of requests that it computes"})
    transfer_dir: str | None = field(default=None, metadata={"help": "folder through which such engines meet"})
    encode_ms_per_patch: float = field(default=0.012, metadata={"help": "vision tower, per patch"})
    prefill_tokens_per_s: float = field(default=8_000.0, metadata={"help": "uncached prompt tokens"})
    decode_tokens_per_s: float = field(default=80.0, metadata={"help": "for one sequence"})
    batch_slope: float = field(default=0.02, metadata={"help": "longer step per further sequence, as a fraction"})
    speed: float = field(default=1.0, metadata={"help": "divides all times; 0 = instant"})
    seed: int = field(default=0, metadata={"help": "of ids and log probabilities"})
    keepalive_timeout_s: float = field(
        default=5.0, metadata={"help": "idle connections are closed after this", "flag": "--keepalive-timeout"}
    )
    shutdown_timeout_s: float = field(
        default=0.0, metadata={"help": "grace for running requests at SIGTERM", "flag": "--shutdown-timeout"}
    )
    sigterm: SigtermMode = field(default=SigtermMode.CUT, metadata={"help": "running requests without grace"})
    record: str | None = field(default=None, metadata={"help": "file that gets one JSON line per request"})
    record_api: bool = field(default=False, metadata={"help": "serve /sim/requests and /sim/faults"})

    def __post_init__(self) -> None:
        for name in ("max_model_len", "kv_tokens", "block_size", "max_num_seqs", "limit_images"):
            if getattr(self, name) < (0 if name == "limit_images" else 1):
                raise SettingsError(f"{name} must be positive")
        if not self.video_frames or self.video_fps <= 0:
            raise SettingsError("video_frames must not be 0, and video_fps must be above it")
        if self.prefill_tokens_per_s <= 0 or self.decode_tokens_per_s <= 0:
            raise SettingsError("prefill_tokens_per_s and decode_tokens_per_s must be above 0")
        if self.transfer_role is not None and self.transfer_dir is None:
            raise SettingsError("transfer_role needs transfer_dir, where the others look")
        if self.speed < 0:
            raise SettingsError("speed must not be negative")
        if self.kv_blocks * self.block_size < self.max_model_len:
            raise SettingsError(
                f"kv_tokens ({self.kv_tokens}) in whole blocks must hold one request of max_model_len "
                f"({self.max_model_len}) tokens; raise kv_tokens or lower max_model_len"
            )
        if self.grid.min_pixels > self.grid.max_pixels:
            raise SettingsError("min_pixels must not exceed max_pixels")

    @property
    def kv_blocks(self) -> int:
        return self.kv_tokens // self.block_size

    @property
    def geometry_family(self) -> Family:
        return self.family if self.family is not None else family_of_model(self.served_model_name)

    @property
    def grid(self) -> Grid:
        """The family's grid under this server's cap and floor."""
        usual = GRIDS[self.geometry_family]
        return Grid(
            patch_px=usual.patch_px,
            merge=usual.merge,
            min_pixels=usual.min_pixels if self.min_pixels is None else self.min_pixels,
            max_pixels=usual.max_pixels if self.max_pixels is None else self.max_pixels,
        )
