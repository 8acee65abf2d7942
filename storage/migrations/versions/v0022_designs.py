"""Runs of the experiment `robustness`, and the answers in them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
LONG = sa.Text().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "design_run",
        sa.Column("audit_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("levels", LONG, nullable=False),
        sa.Column("cells", LONG, nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["audit_id"], ["audit.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("audit_id", "number"),
    )
    op.create_table(
        "design_answer",
        sa.Column("audit_id", sa.Integer(), nullable=False),
        sa.Column("run", sa.Integer(), nullable=False),
        sa.Column("model", WORDS, nullable=False),
        sa.Column("country", WORDS, nullable=False),
        sa.Column("topic", WORDS, nullable=False),
        sa.Column("sample", sa.Integer(), nullable=False),
        sa.Column("outcome", WORDS, nullable=False),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("key", WORDS, nullable=True),
        sa.ForeignKeyConstraint(["audit_id"], ["audit.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("audit_id", "run", "model", "country", "topic", "sample"),
    )
