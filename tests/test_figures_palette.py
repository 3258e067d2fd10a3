"""A stored image loses bytes, not what it shows."""

import base64
import struct
import zlib

import numpy as np
import plotly.graph_objects as go

from specdec_lib.show.figures import still
from specdec_lib.show.figures.palette import SIGNATURE, smaller


def png(pixels, filters):
    """RGBA pixels as the exporter writes them, each row with a filter: 0 plain, 1 difference to the
    left, 2 difference to the row above.
    """
    height, width, _ = pixels.shape
    rows, above = [], np.zeros((width, 4), np.uint8)
    for row, kind in zip(pixels, filters, strict=True):
        left = np.concatenate([np.zeros((1, 4), np.uint8), row[:-1]])
        rows.append(
            bytes([kind])
            + (row - {0: 0, 1: left, 2: above}.get(kind, 0)).astype(np.uint8).tobytes()
        )
        above = row
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(b"".join(rows), 0)), (b"IEND", b""))
    return SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )


def decoded(image):
    """The pixels of a palette PNG."""
    place, found = len(SIGNATURE), {}
    while place < len(image):
        (length,) = struct.unpack(">I", image[place : place + 4])
        found[image[place + 4 : place + 8]] = image[place + 8 : place + 8 + length]
        place += 12 + length
    width, height = struct.unpack(">II", found[b"IHDR"][:8])
    lines = np.frombuffer(zlib.decompress(found[b"IDAT"]), np.uint8).reshape(height, width + 1)
    return np.frombuffer(found[b"PLTE"], np.uint8).reshape(-1, 3)[lines[:, 1:]]


def picture(colours):
    random = np.random.default_rng(0)
    palette = random.integers(0, 16, (colours, 4)) * 17
    return palette[random.integers(0, colours, (40, 60))].astype(np.uint8)


def test_a_picture_of_few_colours_is_the_same_and_smaller():
    pixels = picture(20)
    image = png(pixels, [0, 1, 2, 1] * 10)
    found = smaller(image)
    assert len(found) < len(image) / 3 and (decoded(found) == pixels[:, :, :3]).all()


def test_many_colours_become_the_nearest_levels():
    pixels = np.random.default_rng(1).integers(0, 256, (40, 60, 4)).astype(np.uint8)
    assert abs(decoded(smaller(png(pixels, [1] * 40))).astype(int) - pixels[:, :, :3]).max() <= 43


def test_what_is_of_another_kind_stays_as_it_is():
    for image in (b"no image", png(picture(4), [3] * 40), png(picture(4), [1] * 40)[:60]):
        assert smaller(image) == image


def test_a_still_is_small():
    image = still(go.Figure(go.Bar(y=[1, 2, 3]), {"width": 800, "height": 450}))
    assert not image or len(base64.b64decode(image["image/png"])) < 12_000
