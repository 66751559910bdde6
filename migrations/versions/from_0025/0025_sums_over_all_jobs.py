"""Sums over all clusters, queues and teams, as rows of `hours` and `days`.

The tables stay as they are. A process of the release before that still runs skips these rows, and deletes those of an
hour or day that it counts again.
"""

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

COUNTING = 0x6661756C_686F7572  # held while hours are counted: an hour counted meanwhile would keep the sum of before
FAILED = "status IN ('failed', 'timeout', 'out_of_memory', 'node_fail', 'evicted', 'hung')"
SUMS = (
    ("jobs_sum", "kind = 'jobs'", "status, '', ''", "status"),
    ("sides_sum", f"kind = 'failures' AND {FAILED}", "'failed', side, ''", "side"),
    ("causes_sum", f"kind = 'failures' AND {FAILED}", "'failed', side, cause", "side, cause"),
)


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"SELECT pg_advisory_xact_lock({COUNTING})")
    for kind, counts, keys, by in SUMS:
        op.execute(
            "INSERT INTO hours (hour, kind, cluster, queue, team, status, side, cause, jobs, gpu_hours_lost) "  # noqa: S608 - texts of ours
            f"SELECT hour, '{kind}', '', '', '', {keys}, sum(jobs), sum(gpu_hours_lost) "
            f"FROM hours WHERE {counts} GROUP BY hour, {by}"
        )
        if kind != "jobs_sum":
            op.execute(
                "INSERT INTO days (scope, name, day, kind, status, side, cause, jobs, gpu_hours_lost) "  # noqa: S608 - texts of ours
                f"SELECT 'sums', '', day, '{kind}', {keys}, sum(jobs), sum(gpu_hours_lost) "
                f"FROM days WHERE scope = '' AND name = '' AND {counts} GROUP BY day, {by}"
            )


def downgrade() -> None:
    # In `days` also those that the release before sums from these rows of `hours` without knowing them.
    for table in ("hours", "days"):
        op.execute(f"DELETE FROM {table} WHERE kind IN ('jobs_sum', 'sides_sum', 'causes_sum')")  # noqa: S608 - texts of ours
