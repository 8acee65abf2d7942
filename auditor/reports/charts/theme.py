"""Colours, fonts and sizes that all plots share.

A colour is a CSS variable of the page's stylesheet, so that plots follow the page's light or dark theme.
"""

from __future__ import annotations

VegaLiteSpec = dict[str, object]
"""A Vega-Lite specification of a plot, with its data."""
