"""What the models' own image processors make of originals and of what the gateway delivered for them.

usage: pixel_values.py FOLDER < comparisons.json    (prints JSON: by how many grey levels they differ)

Runs in the engine's environment. Both processors of transformers 5.19.0: the fast one (torchvision, as in vLLM 0.32 and
SGLang 0.5.23) and the slow one (PIL). Both pictures meet the processor under one cap. Files are opened as vLLM does it:
turned upright, transparency on white, RGB.
"""

import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor

# Settings of the published checkpoints (preprocessor_config.json): Qwen2.5-VL has CLIP's mean and deviation.
SETTINGS = {
    "Qwen/Qwen3-VL-8B-Instruct": {
        "patch_size": 16,
        "min_pixels": 65536,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    },
    "Qwen/Qwen2.5-VL-7B-Instruct": {
        "patch_size": 14,
        "min_pixels": 3136,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
    },
}
PROCESSORS = {"slow": Qwen2VLImageProcessorPil, "fast": Qwen2VLImageProcessor}


def opened(path: Path) -> Image.Image:
    """As vllm/multimodal/image.py does it (0.32.0): normalize_image, rgba_to_rgb."""
    with Image.open(path) as file:
        image = ImageOps.exif_transpose(file)
    if image.mode == "RGBA":
        ground = Image.new("RGB", image.size, (255, 255, 255))
        ground.paste(image, mask=image.split()[3])
        return ground
    return image.convert("RGB")


def grey_levels(which: str, model: str, cap_pixels: int, image: Image.Image) -> tuple[np.ndarray, list[int]]:
    """Pixel values undone to 0..255 in order of patches, and the grid."""
    settings = dict(SETTINGS[model])
    size = {"shortest_edge": settings.pop("min_pixels"), "longest_edge": cap_pixels}
    processor = PROCESSORS[which](size=size, merge_size=2, temporal_patch_size=2, **settings)
    out = processor(images=[image], return_tensors="np")
    side = settings["patch_size"]
    values = np.asarray(out["pixel_values"]).reshape(-1, 3, 2, side, side)[:, :, 0]
    mean, std = (np.array(settings[name]).reshape(1, 3, 1, 1) for name in ("image_mean", "image_std"))
    return (values * std + mean) * 255, np.asarray(out["image_grid_thw"])[0].tolist()


def one_order(image: Image.Image, grid: list[int], patch: int) -> bool:
    """Whether Pillow's one call passes over this shape horizontally first, as torchvision always does."""
    width, height = grid[2] * patch, grid[1] * patch
    once = image.resize((width, height), Image.Resampling.BICUBIC)
    twice = image.resize((width, image.height), Image.Resampling.BICUBIC).resize(once.size, Image.Resampling.BICUBIC)
    return once.tobytes() == twice.tobytes()


def compare(folder: Path, case: dict) -> dict:
    """The processors' order of passes, and for each asked-for pair of processor and file the largest difference."""
    original = opened(folder / case["file"])
    expected = {which: grey_levels(which, case["model"], case["cap_pixels"], original) for which in PROCESSORS}
    patch = SETTINGS[case["model"]]["patch_size"]
    found = {"one_order": one_order(original, expected["slow"][1], patch)}
    for which, name in case["pairs"]:
        picture = opened(folder / case["delivered"][name])
        actual, grid = grey_levels(which, case["model"], case["cap_pixels"], picture)
        if grid != expected[which][1]:
            raise SystemExit(f"{case['name']}: {name} has grid {grid}, the original {expected[which][1]}")
        off = np.abs(actual - expected[which][0])
        squares = max(float(np.mean(off**2)), 1e-6)
        decibels = round(float(10 * np.log10(255**2 / squares)), 1)
        found[f"{which} {name}"] = {"levels": round(float(off.max())), "psnr_db": decibels}
    return found


def main() -> None:
    """Read cases from standard input."""
    folder = Path(sys.argv[1])
    cases = json.load(sys.stdin)
    sys.stdout.write(json.dumps({case["name"]: compare(folder, case) for case in cases}))


if __name__ == "__main__":
    main()
