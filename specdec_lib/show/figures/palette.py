"""A picture with few colours in a fifth of its bytes: for images that are stored in notebooks."""

import struct
import zlib

import numpy as np
from jaxtyping import UInt8

SIGNATURE = b"\x89PNG\r\n\x1a\n"
STEPS = (17, 36, 51, 85)  # between two levels of a colour: the finest with at most 256 colours wins
COLOURS = 256
RGBA, PALETTE = 6, 3


def smaller(png: bytes) -> bytes:
    """The same opaque picture with at most 256 colours, or the same bytes where it is of another
    kind than the exporter's, or already small.
    """
    try:
        pixels = _pixels(png)
    except (ValueError, struct.error, zlib.error):
        return png
    height, width, _ = pixels.shape
    for step in STEPS:
        levels = (pixels.astype(np.uint32) + step // 2) // step
        codes, places = np.unique(levels @ np.array([1 << 16, 1 << 8, 1]), return_inverse=True)
        if len(codes) <= COLOURS:
            break
    palette = np.stack([codes >> 16, (codes >> 8) & 255, codes & 255], axis=1) * step
    lines = np.pad(places.reshape(height, width), ((0, 0), (1, 0))).astype(np.uint8)
    header = struct.pack(">IIBBBBB", width, height, 8, PALETTE, 0, 0, 0)
    data = zlib.compress(lines.tobytes(), 9)
    parts = {b"IHDR": header, b"PLTE": palette.astype(np.uint8).tobytes(), b"IDAT": data}
    found = SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in (parts | {b"IEND": b""}).items()
    )
    return found if len(found) < len(png) else png


def _pixels(png: bytes) -> UInt8[np.ndarray, "height width 3"]:
    """Red, green and blue.

    Raises ValueError unless it is eight-bit RGBA in rows that are stored plainly or as differences
    to the left or above.
    """
    place, parts = len(SIGNATURE), {}
    while place < len(png):
        (length,), kind = struct.unpack(">I", png[place : place + 4]), png[place + 4 : place + 8]
        parts[kind] = parts.get(kind, b"") + png[place + 8 : place + 8 + length]
        place += 12 + length
    width, height, *kind = struct.unpack(">IIBBBBB", parts.get(b"IHDR", b""))
    if not png.startswith(SIGNATURE) or kind != [8, RGBA, 0, 0, 0]:
        raise ValueError(f"no eight-bit RGBA, got {kind}")
    lines = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, 1 + 4 * width)
    found = np.zeros((height + 1, width, 4), np.uint8)
    for row, line in enumerate(lines):
        pixels = line[1:].reshape(width, 4)
        if line[0] > 2:
            raise ValueError(f"a row of filter {line[0]}")
        above = found[row - 1] if line[0] == 2 else np.zeros_like(pixels)
        found[row] = np.cumsum(pixels, axis=0, dtype=np.uint8) if line[0] == 1 else pixels + above
    return found[:height, :, :3]
