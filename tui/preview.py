"""What the conflict under the cursor is about, beside the queue where there is room."""

from __future__ import annotations

from textual.content import Content

from auditor.review.item import Item, Side
from auditor.tui.formatting import DECISIONS, axis, content, line, position
from auditor.tui.side_panel import SAMPLE, ordered
from auditor.tui.wording import said

SCALE = 41
EXCERPT = 600


def preview(item: Item) -> Content:
    """A conflict in short: the question, both sides, what the rater said."""
    parts = [
        Content.assemble(
            content(line(item.key.topic), "bold $text-accent"),
            content(f" in {line(item.key.country)}" if item.key.country else "", "bold"),
            "\n",
            content(line(item.question) if item.key.country else item.question, "italic $text-muted"),
        ),
        _side("1 left", item.left),
        _side("2 right", item.right),
        _yours(item),
    ]
    return Content("\n\n").join(parts)


def _side(name: str, side: Side) -> Content:
    scores = [(s.score, SAMPLE) for s in side.samples if s.score is not None]
    usable = [s for s in ordered(side) if s.text and (s.score is not None or s.answer is not None)]
    text = usable[0].text if usable and usable[0].text else "no text came back"
    short = text if len(text) <= EXCERPT else text[:EXCERPT] + "…"
    scale = Content.assemble(
        ("−1 ", "$text-muted"), (axis(SCALE, scores), "$text-primary"), (" +1", "$text-muted"), "\n"
    )
    return Content.assemble(
        content(f"{name}  {position(side.score, side.answer)}", "bold $text-primary"),
        "\n",
        scale if side.score is not None else "",
        content(short),
    )


def _yours(item: Item) -> Content:
    if item.decision is None or not item.decision.settles:
        pieces = [Content.styled("not decided by you", "$text-muted")]
    else:
        pieces = [DECISIONS[item.decision].says(said(item.decision, item.row.score))]
    if item.row.flagged:
        pieces.append(Content.styled("⚑ flagged", "$text-error"))
    if item.row.note:
        pieces.append(content(f"✎ {line(item.row.note)}", "$text-accent"))
    return Content("  ·  ").join(pieces)
