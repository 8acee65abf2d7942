"""What each request cost, and which audit asked it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    with op.batch_alter_table("attempt", schema=None) as batch_op:
        batch_op.add_column(sa.Column("audit_id", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("name", WORDS, nullable=True))
        batch_op.add_column(sa.Column("prompt_tokens", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("completion_tokens", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("cost_usd", sa.Float(), nullable=True))
        batch_op.add_column(sa.Column("estimated", sa.Boolean(), nullable=True))
        batch_op.create_index(batch_op.f("ix_attempt_audit_id"), ["audit_id"], unique=False)
