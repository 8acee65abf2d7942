"""Similarities of reasonings about different cells, which self-consistency is compared with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("score", schema=None) as batch_op:
        batch_op.add_column(sa.Column("chance_similarity", sa.Float(), nullable=True))
        batch_op.add_column(sa.Column("topic_similarity", sa.Float(), nullable=True))
