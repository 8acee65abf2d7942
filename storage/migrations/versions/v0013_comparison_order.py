"""Order of imported comparisons in their file, which ratings by Elo depend on."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("comparison") as table:
        table.add_column(sa.Column("position", sa.Integer(), nullable=True))
