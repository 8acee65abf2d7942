"""Claims that configurations state before their audits ask."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "registration",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("audit_id", sa.Integer(), nullable=False),
        sa.Column("baseline", WORDS, nullable=False),
        sa.Column("margin", sa.Float(), nullable=False),
        sa.Column("n_answers", sa.Integer(), nullable=False),
        sa.Column("registered_at", WORDS, nullable=False),
        sa.ForeignKeyConstraint(
            ["audit_id"],
            ["audit.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("registration", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_registration_audit_id"), ["audit_id"], unique=False)
