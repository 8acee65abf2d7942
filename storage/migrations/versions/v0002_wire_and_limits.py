"""What went over the wire, and changes of limits."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
LONG = sa.Text().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "payload",
        sa.Column("digest", WORDS, nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_table(
        "limit_change",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("audit_id", sa.Integer(), nullable=False),
        sa.Column("run", WORDS, nullable=False),
        sa.Column("at", WORDS, nullable=False),
        sa.Column("account", WORDS, nullable=False),
        sa.Column("before", sa.Integer(), nullable=False),
        sa.Column("after", sa.Integer(), nullable=False),
        sa.Column("why", WORDS, nullable=False),
        sa.ForeignKeyConstraint(["audit_id"], ["audit.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("limit_change", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_limit_change_audit_id"), ["audit_id"], unique=False)

    with op.batch_alter_table("answer", schema=None) as batch_op:
        batch_op.add_column(sa.Column("fingerprint", WORDS, nullable=True))
        batch_op.add_column(sa.Column("sent", LONG, nullable=True))
        batch_op.add_column(sa.Column("altered", WORDS, nullable=True))
        batch_op.add_column(sa.Column("payload", WORDS, nullable=True))

    with op.batch_alter_table("attempt", schema=None) as batch_op:
        batch_op.add_column(sa.Column("size", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("payload", WORDS, nullable=True))
