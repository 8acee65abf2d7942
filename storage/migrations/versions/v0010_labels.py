"""People's labels on a random sample, and how the sample was drawn."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
LONG = sa.Text().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "label",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("audit_id", sa.Integer(), nullable=False),
        sa.Column("kind", WORDS, nullable=False),
        sa.Column("unit", WORDS, nullable=False),
        sa.Column("rater", WORDS, nullable=False),
        sa.Column("act", WORDS, nullable=False),
        sa.Column("of", sa.Integer(), nullable=True),
        sa.Column("value", WORDS, nullable=False),
        sa.Column("aspects", WORDS, nullable=False),
        sa.Column("note", WORDS, nullable=False),
        sa.Column("content", WORDS, nullable=False),
        sa.Column("text_hash", WORDS, nullable=True),
        sa.Column("duration_s", sa.Float(), nullable=True),
        sa.Column("source", WORDS, nullable=False),
        sa.Column("labelled_at", WORDS, nullable=False),
        sa.ForeignKeyConstraint(
            ["audit_id"],
            ["audit.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_label_audit", "label", ["audit_id", "kind", "rater"])
    op.create_table(
        "label_draw",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("audit_id", sa.Integer(), nullable=False),
        sa.Column("kind", WORDS, nullable=False),
        sa.Column("source", WORDS, nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("stratify", WORDS, nullable=False),
        sa.Column("strata", LONG, nullable=False),
        sa.Column("population", sa.Integer(), nullable=False),
        sa.Column("population_hash", WORDS, nullable=False),
        sa.Column("drawn_at", WORDS, nullable=False),
        sa.ForeignKeyConstraint(
            ["audit_id"],
            ["audit.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "sampled_unit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("audit_id", sa.Integer(), nullable=False),
        sa.Column("draw", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("unit", WORDS, nullable=False),
        sa.Column("stratum", WORDS, nullable=False),
        sa.Column("n_in_stratum", sa.Integer(), nullable=False),
        sa.Column("inclusion", sa.Float(), nullable=True),
        sa.Column("content", WORDS, nullable=False),
        sa.Column("drawn_at", WORDS, nullable=False),
        sa.ForeignKeyConstraint(
            ["audit_id"],
            ["audit.id"],
        ),
        sa.ForeignKeyConstraint(
            ["draw"],
            ["label_draw.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_sampled_unit_draw", "sampled_unit", ["draw"])
