"""The first tables: leader, status, profiles, decisions and reservations.

Revision ID: 0001
Revises: none
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TABLES = ("elastic_reservation", "elastic_decision", "elastic_profile", "elastic_status", "elastic_leader")


def _document() -> sa.Column:
    return sa.Column("document", sa.Text().with_variant(LONGTEXT(), "mysql"), nullable=False)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "elastic_leader",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("holder", sa.String(250), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("renewed_at", sa.Float(53), nullable=False),
        sa.Column("expires_at", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_elastic_leader"),
    )
    for name in ("elastic_status", "elastic_profile"):
        op.create_table(
            name,
            sa.Column("name", sa.String(64), nullable=False),
            sa.Column("saved_at", sa.Float(53), nullable=False),
            _document(),
            sa.PrimaryKeyConstraint("name", name=f"pk_{name}"),
        )
    op.create_table(
        "elastic_decision",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("at", sa.Float(53), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("about", sa.String(500), nullable=False),
        sa.Column("code", sa.String(64), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("applied", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_elastic_decision"),
    )
    op.create_index("ix_elastic_decision_about", "elastic_decision", ["about"])
    op.create_table(
        "elastic_reservation",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("dag_id", sa.String(250), nullable=False),
        sa.Column("run_id", sa.String(250), nullable=False),
        sa.Column("node_pool", sa.String(250), nullable=False),
        sa.Column("nodes", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("needed_at", sa.Float(53), nullable=False),
        sa.Column("until_at", sa.Float(53), nullable=False),
        sa.Column("ask_at", sa.Float(53), nullable=False),
        sa.Column("asked_at", sa.Float(53), nullable=True),
        sa.Column("expires_at", sa.Float(53), nullable=False),
        sa.Column("warm_nodes", sa.Integer(), nullable=False),
        sa.Column("changed_at", sa.Float(53), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_elastic_reservation"),
    )


def downgrade() -> None:
    """Drop the tables."""
    for name in _TABLES:
        op.drop_table(name)
