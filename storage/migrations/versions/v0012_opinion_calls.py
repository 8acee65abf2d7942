"""Opinions that models of a run were asked for: their calls, and how their shares were read."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    with op.batch_alter_table("opinion") as table:
        table.add_column(sa.Column("is_rescaled", sa.Boolean(), nullable=True))
        table.add_column(sa.Column("mass", sa.Float(), nullable=True))
        table.add_column(sa.Column("key", WORDS, nullable=True))
        table.add_column(sa.Column("repair_key", WORDS, nullable=True))
