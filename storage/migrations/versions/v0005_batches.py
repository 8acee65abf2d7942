"""Batches that calls were put to a provider in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
LONG = sa.Text().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "batch",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("audit_id", sa.Integer(), nullable=False),
        sa.Column("tag", WORDS, nullable=False),
        sa.Column("name", WORDS, nullable=False),
        sa.Column("remote", WORDS, nullable=True),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("calls", LONG, nullable=False),
        sa.Column("reserved_usd", sa.Float(), nullable=False),
        sa.Column("prepared_at", WORDS, nullable=False),
        sa.Column("submitted_at", WORDS, nullable=True),
        sa.Column("ended_at", WORDS, nullable=True),
        sa.Column("how", WORDS, nullable=True),
        sa.ForeignKeyConstraint(["audit_id"], ["audit.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("tag"),
    )
    with op.batch_alter_table("batch", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_batch_audit_id"), ["audit_id"], unique=False)
