"""Indexes that find the traces of some cells, and the answers of all models to some questions."""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_trace_cell", "trace", ["audit_id", "country", "topic"])
    op.create_index("ix_moral_answer_question", "moral_answer", ["audit_id", "question"])
