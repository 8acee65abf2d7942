"""What models were found to accept, and how each answer was requested."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
LONG = sa.Text().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "capability",
        sa.Column("audit_id", sa.Integer(), nullable=False),
        sa.Column("model", WORDS, nullable=False),
        sa.Column("server", WORDS, nullable=False),
        sa.Column("effort", WORDS, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("id", WORDS, nullable=False),
        sa.Column("content", LONG, nullable=False),
        sa.Column("evidence", LONG, nullable=False),
        sa.Column("litellm_version", WORDS, nullable=False),
        sa.Column("created_at", WORDS, nullable=False),
        sa.ForeignKeyConstraint(["audit_id"], ["audit.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("audit_id", "model", "server", "effort", "number"),
    )
    with op.batch_alter_table("answer", schema=None) as batch_op:
        batch_op.add_column(sa.Column("capability", WORDS, nullable=True))
        batch_op.add_column(sa.Column("form", WORDS, nullable=True))
        batch_op.add_column(sa.Column("reasoning_tokens", sa.Integer(), nullable=True))
    with op.batch_alter_table("batch", schema=None) as batch_op:
        batch_op.add_column(sa.Column("capability", LONG, nullable=True))
