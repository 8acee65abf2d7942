"""The Equal Earth projection of maps: its place in a specification, and the point of a longitude and latitude."""

from __future__ import annotations

import math

CENTRAL_MERIDIAN_DEGREES = 11
"""Longitude of the middle of the map, so that its edge is in the Bering Strait."""
EQUATOR_SHARE = 0.253
"""Distance of the equator from the upper edge of a map, as a share of its width."""
EARTH_WIDTH = 5.2
"""Width of the map's land in the projection at scale 1."""
_COEFFICIENTS = (1.340264, -0.081106, 0.000893, 0.003796)
"""A1 to A4 of Šavrič, Patterson and Jenny (2018), doi:10.1080/13658816.2018.1504949."""
_SINE_FACTOR = math.sqrt(3) / 2


def build_projection(width_px: float) -> dict[str, object]:
    """Specify the projection of a map of some width for Vega-Lite."""
    return {
        "type": "equalEarth",
        "rotate": [-CENTRAL_MERIDIAN_DEGREES, 0, 0],
        # Without added points along straight lines: the shapes have enough, and looking for them takes time.
        "precision": 0,
        "scale": width_px / EARTH_WIDTH,
        "translate": [width_px / 2, round(width_px * EQUATOR_SHARE)],
    }


def project(longitude: float, latitude: float) -> tuple[float, float]:
    """Point of a longitude and latitude in degrees at scale 1, from the middle of the map: to the right, and down."""
    rotated = (longitude - CENTRAL_MERIDIAN_DEGREES + 180) % 360 - 180
    angle = math.asin(_SINE_FACTOR * math.sin(math.radians(latitude)))
    a1, a2, a3, a4 = _COEFFICIENTS
    square = angle**2
    slope = a1 + 3 * a2 * square + square**3 * (7 * a3 + 9 * a4 * square)
    x = math.radians(rotated) * math.cos(angle) / (_SINE_FACTOR * slope)
    y = angle * (a1 + a2 * square + square**3 * (a3 + a4 * square))
    return x, -y
