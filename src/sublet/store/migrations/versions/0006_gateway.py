"""A gateway's people, rules, community accounts, apps and hooks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

ID = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
DUE = sa.text("due IS NOT NULL")
TABLES = (
    "drafts",
    "deliveries",
    "hooks",
    "versions",
    "apps",
    "turns",
    "accounts",
    "audit",
    "access_requests",
    "uses",
    "rules",
    "codes",
    "members",
    "groups",
    "factors",
    "identities",
    "people",
)


def upgrade() -> None:
    """Create the tables, and add columns to tokens and sessions."""
    op.create_table(
        "people",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("seen", sa.BigInteger()),
        sa.Column("blocked", sa.Text()),
        sa.Column("by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="people_pkey"),
    )
    op.create_table(
        "identities",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "value", name="identities_pkey"),
        sa.ForeignKeyConstraint(["person"], ["people.name"], name="identities_person_fkey"),
    )
    op.create_index("identities_person", "identities", ["person"])
    op.create_table(
        "factors",
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("confirmed", sa.BigInteger()),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("tries", sa.BigInteger(), nullable=False),
        sa.Column("tried", sa.BigInteger(), nullable=False),
        sa.Column("recovery", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("person", name="factors_pkey"),
        sa.ForeignKeyConstraint(["person"], ["people.name"], name="factors_person_fkey"),
    )
    op.create_table(
        "groups",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="groups_pkey"),
    )
    op.create_table(
        "members",
        sa.Column("group", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("group", "person", name="members_pkey"),
        sa.ForeignKeyConstraint(["group"], ["groups.name"], name="members_group_fkey"),
    )
    op.create_index("members_person", "members", ["person"])
    op.create_table(
        "codes",
        sa.Column("id", ID, nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.Column("tries", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="codes_pkey"),
    )
    op.create_index("codes_address_created", "codes", ["address", "created"])
    op.create_index("codes_host_created", "codes", ["host", "created"])
    op.create_table(
        "rules",
        sa.Column("id", ID, nullable=False),
        sa.Column("effect", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("noun", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("limits", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger()),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="rules_pkey"),
    )
    op.create_table(
        "uses",
        sa.Column("session", ID, nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("accepted", sa.BigInteger(), nullable=False),
        sa.Column("nodes", sa.BigInteger(), nullable=False),
        sa.Column("cores", sa.BigInteger(), nullable=False),
        sa.Column("gpus", sa.BigInteger(), nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.Column("started", sa.BigInteger()),
        sa.Column("ended", sa.BigInteger()),
        sa.PrimaryKeyConstraint("session", name="uses_pkey"),
    )
    op.create_index("uses_ended", "uses", ["ended"])
    op.create_index("uses_person_app_ended", "uses", ["person", "app", "ended"])
    op.create_index("uses_person_platform_ended", "uses", ["person", "platform", "ended"])
    op.create_table(
        "access_requests",
        sa.Column("id", ID, nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("noun", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("decided", sa.BigInteger()),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("rule", ID, nullable=False),
        sa.PrimaryKeyConstraint("id", name="access_requests_pkey"),
    )
    op.create_index("access_requests_person_created", "access_requests", ["person", "created"])
    op.create_index("access_requests_state_created", "access_requests", ["state", "created"])
    op.create_table(
        "audit",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("noun", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="audit_pkey"),
        sqlite_autoincrement=True,
    )
    op.create_index("audit_noun_name_id", "audit", ["noun", "name", "id"])
    op.create_index("audit_person_id", "audit", ["person", "id"])
    op.create_index("audit_time", "audit", ["time"])
    op.create_table(
        "accounts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("capacity", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="accounts_pkey"),
    )
    op.create_table(
        "turns",
        sa.Column("session", ID, nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("asked", sa.BigInteger(), nullable=False),
        sa.Column("taken", sa.BigInteger()),
        sa.PrimaryKeyConstraint("session", name="turns_pkey"),
    )
    op.create_index("turns_account_taken", "turns", ["account", "taken"])
    op.create_table(
        "apps",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="apps_pkey"),
    )
    op.create_table(
        "versions",
        sa.Column("id", ID, nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("branch", sa.Text(), nullable=False),
        sa.Column("commit", sa.Text(), nullable=False),
        sa.Column("tree", sa.Text(), nullable=False),
        sa.Column("manifest", sa.Text(), nullable=False),
        sa.Column("manifest_hash", sa.Text(), nullable=False),
        sa.Column("image", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("about", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("proposed", sa.BigInteger(), nullable=False),
        sa.Column("proposed_by", sa.Text(), nullable=False),
        sa.Column("decided", sa.BigInteger()),
        sa.Column("decided_by", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="versions_pkey"),
        sa.ForeignKeyConstraint(["app"], ["apps.name"], name="versions_app_fkey"),
        sa.UniqueConstraint("app", "number", name="versions_app_number_key"),
    )
    op.create_index("versions_state_proposed", "versions", ["state", "proposed"])
    op.create_table(
        "hooks",
        sa.Column("id", ID, nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("session", ID, nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.Column("after", sa.BigInteger(), nullable=False),
        sa.Column("trouble", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="hooks_pkey"),
    )
    op.create_index("hooks_person", "hooks", ["person"])
    op.create_table(
        "deliveries",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("hook", ID, nullable=False),
        sa.Column("event", sa.BigInteger(), nullable=False),
        sa.Column("due", sa.BigInteger()),
        sa.Column("tries", sa.BigInteger(), nullable=False),
        sa.Column("tried", sa.BigInteger()),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="deliveries_pkey"),
        sa.ForeignKeyConstraint(["hook"], ["hooks.id"], name="deliveries_hook_fkey"),
        sa.UniqueConstraint("hook", "event", name="deliveries_hook_event_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("deliveries_due", "deliveries", ["due"], sqlite_where=DUE, postgresql_where=DUE)
    op.create_table(
        "drafts",
        sa.Column("id", ID, nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.Column("fields", sa.Text(), nullable=False),
        sa.Column("session", ID, nullable=False),
        sa.PrimaryKeyConstraint("id", name="drafts_pkey"),
    )
    op.create_index("drafts_person_created", "drafts", ["person", "created"])
    with op.batch_alter_table("tokens") as table:
        table.add_column(sa.Column("use", sa.Text(), nullable=False, server_default="api"))
        table.add_column(sa.Column("scope", sa.Text(), nullable=False, server_default=""))
        table.add_column(sa.Column("session", ID, nullable=False, server_default=""))
        table.add_column(sa.Column("used", sa.BigInteger()))
    op.create_index("tokens_session", "tokens", ["session"])
    with op.batch_alter_table("sessions") as table:
        table.add_column(sa.Column("app", ID, nullable=False, server_default=""))


def downgrade() -> None:
    """Drop the tables and columns."""
    with op.batch_alter_table("sessions") as table:
        table.drop_column("app")
    op.drop_index("tokens_session", "tokens")
    with op.batch_alter_table("tokens") as table:
        for column in ("used", "session", "scope", "use"):
            table.drop_column(column)
    for name in TABLES:
        op.drop_table(name)
