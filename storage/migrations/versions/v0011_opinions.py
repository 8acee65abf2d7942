"""Distributions of answers: models' answers on a survey's scale, and the shares of people's answers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
LONG = sa.Text().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "survey_shares",
        sa.Column("audit_id", sa.Integer(), nullable=False),
        sa.Column("shares", LONG, nullable=False),
        sa.ForeignKeyConstraint(["audit_id"], ["audit.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("audit_id"),
    )
    op.create_table(
        "opinion",
        sa.Column("audit_id", sa.Integer(), nullable=False),
        sa.Column("model", WORDS, nullable=False),
        sa.Column("country", WORDS, nullable=False),
        sa.Column("topic", WORDS, nullable=False),
        sa.Column("dimension", WORDS, nullable=False),
        sa.Column("group", WORDS, nullable=False),
        sa.Column("mode", WORDS, nullable=False),
        sa.Column("scale_order", WORDS, nullable=False),
        sa.Column("sample", sa.Integer(), nullable=False),
        sa.Column("outcome", WORDS, nullable=False),
        sa.Column("shares", WORDS, nullable=True),
        sa.Column("n", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["audit_id"], ["audit.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint(
            "audit_id", "model", "country", "topic", "dimension", "group", "mode", "scale_order", "sample"
        ),
    )
