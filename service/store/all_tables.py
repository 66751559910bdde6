"""Every room's tables joined, for migrations and for the check against drift."""

from service.store import tables_automation, tables_fleet, tables_groups, tables_people, tables_reports
from service.store.tables import metadata

ROOMS = (tables_automation, tables_fleet, tables_groups, tables_people, tables_reports)

__all__ = ["ROOMS", "metadata"]
