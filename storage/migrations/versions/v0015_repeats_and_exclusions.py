"""Questions that were asked again, and answers that people declared invalid."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

# Text types; remove those that are not used.
WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
LONG = sa.Text().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "excluded_content",
        sa.Column("audit_id", sa.Integer(), nullable=False),
        sa.Column("source", WORDS, nullable=False),
        sa.Column("row", LONG, nullable=False),
        sa.Column("content", LONG, nullable=False),
        sa.ForeignKeyConstraint(["audit_id"], ["audit.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("audit_id", "source", "row"),
    )
    op.create_table(
        "exclusion",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("audit_id", sa.Integer(), nullable=False),
        sa.Column("act", WORDS, nullable=False),
        sa.Column("of", sa.Integer(), nullable=True),
        sa.Column("model", WORDS, nullable=True),
        sa.Column("country", WORDS, nullable=True),
        sa.Column("topic", WORDS, nullable=True),
        sa.Column("sample", sa.Integer(), nullable=True),
        sa.Column("reason", LONG, nullable=False),
        sa.Column("excluded_at", WORDS, nullable=False),
        sa.ForeignKeyConstraint(
            ["audit_id"],
            ["audit.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("exclusion", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_exclusion_audit_id"), ["audit_id"], unique=False)

    with op.batch_alter_table("trace", schema=None) as batch_op:
        batch_op.add_column(sa.Column("repeat_key", WORDS, nullable=True))
        batch_op.add_column(sa.Column("first_outcome", WORDS, nullable=True))

    with op.batch_alter_table("verdict", schema=None) as batch_op:
        batch_op.add_column(sa.Column("repeat_key", WORDS, nullable=True))
        batch_op.add_column(sa.Column("first_outcome", WORDS, nullable=True))
