"""What probes without tables of their own read from answers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

# Text types; remove those that are not used.
WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
LONG = sa.Text().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "probe_result",
        sa.Column("audit_id", sa.Integer(), nullable=False),
        sa.Column("probe", WORDS, nullable=False),
        sa.Column("model", WORDS, nullable=False),
        sa.Column("unit", WORDS, nullable=False),
        sa.Column("sample", sa.Integer(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("outcome", WORDS, nullable=False),
        sa.Column("key", WORDS, nullable=True),
        sa.Column("value", LONG, nullable=True),
        sa.Column("reader_version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["audit_id"], ["audit.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("audit_id", "probe", "model", "unit", "sample", "turn"),
    )
