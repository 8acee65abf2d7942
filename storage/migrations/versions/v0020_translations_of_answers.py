"""Translations of the answers to questions of the probe `semantic`."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
LONG = sa.Text().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "moral_translation",
        sa.Column("audit_id", sa.Integer(), nullable=False),
        sa.Column("model", WORDS, nullable=False),
        sa.Column("question", WORDS, nullable=False),
        sa.Column("wording", sa.Integer(), nullable=False),
        sa.Column("language", WORDS, nullable=False),
        sa.Column("outcome", WORDS, nullable=False),
        sa.Column("text", LONG, nullable=True),
        sa.Column("key", WORDS, nullable=True),
        sa.ForeignKeyConstraint(["audit_id"], ["audit.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("audit_id", "model", "question", "wording", "language"),
    )
