"""Tasks of one's own: their items, answers beside scores, and conflicts and ratings of answers that are no scores."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
LONG = sa.Text().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "task_item",
        sa.Column("audit_id", sa.Integer(), nullable=False),
        sa.Column("id", WORDS, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("question", LONG, nullable=False),
        sa.Column("context", LONG, nullable=False),
        sa.Column("options", LONG, nullable=False),
        sa.Column("truth", LONG, nullable=True),
        sa.ForeignKeyConstraint(["audit_id"], ["audit.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("audit_id", "id"),
    )
    with op.batch_alter_table("conflict", schema=None) as batch_op:
        batch_op.add_column(sa.Column("answer_left", LONG, nullable=True))
        batch_op.add_column(sa.Column("answer_right", LONG, nullable=True))
        batch_op.alter_column("score_left", existing_type=sa.Float(), nullable=True)
        batch_op.alter_column("score_right", existing_type=sa.Float(), nullable=True)

    with op.batch_alter_table("rating", schema=None) as batch_op:
        batch_op.add_column(sa.Column("answer_left", LONG, nullable=True))
        batch_op.add_column(sa.Column("answer_right", LONG, nullable=True))
        batch_op.alter_column("score_left", existing_type=sa.Float(), nullable=True)
        batch_op.alter_column("score_right", existing_type=sa.Float(), nullable=True)

    with op.batch_alter_table("score", schema=None) as batch_op:
        batch_op.add_column(sa.Column("answer", LONG, nullable=True))

    with op.batch_alter_table("trace", schema=None) as batch_op:
        batch_op.add_column(sa.Column("answer", LONG, nullable=True))
