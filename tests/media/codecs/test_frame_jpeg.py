from __future__ import annotations

import numpy as np
import simplejpeg

from gateway.media.codecs.frame_jpeg import encode_frame


def test_a_view_of_samples_becomes_a_file_of_full_chroma() -> None:
    samples = np.zeros((40, 60, 3), np.uint8)
    samples[:, 30:, 0] = 255
    file = encode_frame(samples[::-1, ::-1], 95)
    assert simplejpeg.decode_jpeg_header(file) == (40, 60, "YCbCr", "444")
    assert abs(simplejpeg.decode_jpeg(file).astype(int) - samples[::-1, ::-1]).max() <= 8
    assert file == encode_frame(samples[::-1, ::-1].copy(), 95)
