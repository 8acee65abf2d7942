"""Decisions that revealed nothing, and decisions that settle several conflicts of a cell.

Both columns are NULL in earlier ratings, so that the digests of the hash chain, which leave NULL out, stay the same.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("rating", sa.Column("withheld", sa.Boolean(), nullable=True))
    op.add_column("rating", sa.Column("follows", sa.Integer(), nullable=True))
