"""The families, one file each. To add one: its file, one line here, its checkpoints in `checkpoints.toml`."""

from __future__ import annotations

from typing import Final

from gateway.models.families.aya_vision import AYA_VISION
from gateway.models.families.command_a_vision import COMMAND_A_VISION
from gateway.models.families.deepseek_ocr import DEEPSEEK_OCR, DEEPSEEK_OCR2
from gateway.models.families.deepseek_vl2 import DEEPSEEK_VL2
from gateway.models.families.ernie4_5_vl import ERNIE4_5_VL
from gateway.models.families.fixed import GEMMA3N, PALIGEMMA
from gateway.models.families.gemma3 import GEMMA3
from gateway.models.families.gemma4 import GEMMA4
from gateway.models.families.glm4v import GLM4V
from gateway.models.families.idefics3 import IDEFICS3, SMOLVLM
from gateway.models.families.internvl import INTERNVL
from gateway.models.families.kimi_k25 import KIMI_K25
from gateway.models.families.kimi_vl import KIMI_VL
from gateway.models.families.lfm2_vl import LFM2_VL
from gateway.models.families.llama4 import LLAMA4
from gateway.models.families.llava_1_5 import LLAVA_1_5
from gateway.models.families.llava_next import LLAVA_NEXT
from gateway.models.families.llava_onevision import LLAVA_ONEVISION
from gateway.models.families.minicpmv import MINICPMV
from gateway.models.families.minicpmv4_6 import MINICPMV4_6
from gateway.models.families.mllama import MLLAMA
from gateway.models.families.molmo import MOLMO
from gateway.models.families.nemotron3_nano_omni import NEMOTRON3_NANO_OMNI
from gateway.models.families.nemotron_nano_v2_vl import NEMOTRON_NANO_V2_VL
from gateway.models.families.nemotron_nano_vl import NEMOTRON_NANO_VL
from gateway.models.families.ovis2 import OVIS2
from gateway.models.families.ovis2_5 import OVIS2_5
from gateway.models.families.paddleocr_vl import PADDLEOCR_VL
from gateway.models.families.phi3_5_v import PHI3_5_V
from gateway.models.families.phi4_mm import PHI4_MM
from gateway.models.families.pixtral import PIXTRAL_HF, PIXTRAL_MISTRAL
from gateway.models.families.qwen2_vl import QWEN2_VL
from gateway.models.families.qwen3_vl import QWEN3_VL
from gateway.models.families.step3_vl import STEP3_VL
from gateway.models.families.text_only import TEXT_ONLY
from gateway.models.families.unknown import UNKNOWN
from gateway.models.family import Family, Target, TargetReason
from gateway.types import ImageTokens

__all__ = ["FAMILIES", "Family", "ImageTokens", "Target", "TargetReason", "family_of"]

FAMILIES: Final[tuple[Family, ...]] = (
    QWEN2_VL,
    QWEN3_VL,
    # Resized to a grid.
    ERNIE4_5_VL,
    GLM4V,
    KIMI_K25,
    KIMI_VL,
    NEMOTRON3_NANO_OMNI,
    OVIS2_5,
    PADDLEOCR_VL,
    PIXTRAL_HF,
    PIXTRAL_MISTRAL,
    # Scaled or stretched to a budget.
    GEMMA3,
    GEMMA3N,
    GEMMA4,
    LFM2_VL,
    PALIGEMMA,
    # Cut into tiles.
    AYA_VISION,
    COMMAND_A_VISION,
    DEEPSEEK_OCR,
    DEEPSEEK_OCR2,
    DEEPSEEK_VL2,
    IDEFICS3,
    SMOLVLM,
    INTERNVL,
    LLAMA4,
    LLAVA_1_5,
    LLAVA_NEXT,
    LLAVA_ONEVISION,
    MINICPMV,
    MINICPMV4_6,
    MLLAMA,
    MOLMO,
    NEMOTRON_NANO_V2_VL,
    NEMOTRON_NANO_VL,
    OVIS2,
    PHI3_5_V,
    PHI4_MM,
    STEP3_VL,
    TEXT_ONLY,
    UNKNOWN,
)

_BY_NAME: Final = {family.name: family for family in FAMILIES}


def family_of(name: str) -> Family:
    """The family that a checkpoint names. Raises `KeyError` for a name that is not in the registry."""
    return _BY_NAME[name]
