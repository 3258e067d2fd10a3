"""A picture with few colours in a fifth of its bytes: for images that are stored in notebooks."""

import struct
import zlib

import numpy as np
from jaxtyping import UInt8

SIGNATURE = b"\x89PNG\r\n\x1a\n"
STEPS = (
    17,
    36,
    51,
    85,
)  # between two levels of a colour: the finest with which a picture has at most 256 colours
COLOURS = 256
RGBA, PALETTE = 6, 3


def smaller(png: bytes) -> bytes:
    """The same picture with at most 256 colours, or the same bytes where it is of another kind than
    the exporter's, or already small.

    Transparency is dropped: the exporter's pages are opaque.
    """
    try:
        pixels = _pixels(png)
    except (ValueError, struct.error, zlib.error):
        return png
    for step in STEPS:
        levels = (pixels.astype(np.uint32) + step // 2) // step
        codes, places = np.unique(
            (levels[:, :, 0] << 16) | (levels[:, :, 1] << 8) | levels[:, :, 2], return_inverse=True
        )
        if len(codes) <= COLOURS:
            break
    palette = np.stack([codes >> 16, (codes >> 8) & 255, codes & 255], axis=1) * step
    found = _written(places.reshape(pixels.shape[:2]).astype(np.uint8), palette.astype(np.uint8))
    return found if len(found) < len(png) else png


def _pixels(png: bytes) -> UInt8[np.ndarray, "height width 3"]:
    """Red, green and blue.

     Raises ValueError unless it is eight-bit RGBA in rows that are stored plainly or as differences
    to the left or above.
    """
    if not png.startswith(SIGNATURE):
        raise ValueError("no PNG")
    place, data, size = len(SIGNATURE), b"", (0, 0)
    while place < len(png):
        (length,), kind = struct.unpack(">I", png[place : place + 4]), png[place + 4 : place + 8]
        body = png[place + 8 : place + 8 + length]
        if kind == b"IHDR":
            *size, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            if (depth, colour, interlaced) != (8, RGBA, 0):
                raise ValueError(f"depth {depth}, colour type {colour}")
        data += body if kind == b"IDAT" else b""
        place += 12 + length
    width, height = size
    lines = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + 4 * width)
    found = np.zeros((height, width, 4), np.uint8)
    for row, line in enumerate(lines):
        pixels = line[1:].reshape(width, 4)
        if line[0] == 1:
            pixels = np.cumsum(pixels, axis=0, dtype=np.uint8)
        elif line[0] == 2:
            pixels = pixels + (found[row - 1] if row else np.zeros_like(pixels))
        elif line[0]:
            raise ValueError(f"a row of filter {line[0]}")
        found[row] = pixels
    return found[:, :, :3]


def _written(
    places: UInt8[np.ndarray, "height width"], palette: UInt8[np.ndarray, "colours 3"]
) -> bytes:
    """A PNG of these places in the palette."""
    height, width = places.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), places], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, PALETTE, 0, 0, 0)
    parts = (
        (b"IHDR", header),
        (b"PLTE", palette.tobytes()),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    return SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )
