"""Draw Vega-Lite specifications: as inline SVG for a page, and as SVG, PNG and PDF files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageFigure:
    """A figure of a page.

    Attributes:
        title: what the figure shows; its accessible name.
        description: what can be read from it, for readers who cannot see it.
    """

    spec: Mapping[str, object]
    title: str
    description: str


def render_page_svgs(figures: Sequence[PageFigure], id_prefix: str = "figure") -> tuple[str, list[str]]:
    """Draw all figures of a page at once, which is several times faster than one by one.

    Args:
        figures: any number of figures; none of them loads vl-convert if empty.
        id_prefix: ids in the figures start with it.

    Returns:
        An invisible `<svg>` with the shapes that several figures share, to be put once at the start of the page's body
        (empty if there are none); and an `<svg>` for each figure.
    """
    raise NotImplementedError


def render_page_svg(spec: Mapping[str, object], *, title: str, description: str, id_prefix: str) -> str:
    """Draw one figure as an inline `<svg>` that needs nothing else. A page with several calls `render_page_svgs`."""
    raise NotImplementedError


def export_spec(spec: Mapping[str, object]) -> bytes:
    """Write the specification as JSON, with the colours of the light theme on white."""
    raise NotImplementedError


def export_svg(spec: Mapping[str, object]) -> bytes:
    """Draw a self-contained SVG file, with the colours of the light theme on white."""
    raise NotImplementedError


def export_png(spec: Mapping[str, object]) -> bytes:
    """Draw a PNG file with two pixels for each unit of the SVG."""
    raise NotImplementedError


def export_pdf(spec: Mapping[str, object]) -> bytes:
    """Draw a PDF file."""
    raise NotImplementedError
