"""Tokens of the prompt that the provider had kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("answer") as table:
        table.add_column(sa.Column("cached_tokens", sa.Integer(), nullable=True))
