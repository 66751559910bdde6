"""How often each periodic task of the service runs, in seconds; leases let one process at a time do the work."""

from typing import Final

REPORTS_S: Final = 60.0
NODE_STATISTICS_S: Final = 5.0
LATE_REVISIONS_S: Final = 5.0
AUTOMATION_S: Final = 5.0
RETENTION_S: Final = 600.0
SEALS_S: Final = 60.0
AUDIT_HEADS_S: Final = 60.0
GROUP_COUNTS_S: Final = 1.0
AUDIT_SAMPLES_S: Final = 600.0
HOURLY_COUNTS_S: Final = 60.0
UNDELIVERABLE_MESSAGES_S: Final = 60.0
