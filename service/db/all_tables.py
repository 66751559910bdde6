"""Imports the tables of every domain, so that the metadata is complete for migrations and the schema drift test."""

from service.db import task_leases
from service.dead_letters import repository as dead_letters
from service.deliveries import tables as deliveries
from service.drift import repository as drift
from service.failures import tables as failures
from service.feedback import tables as feedback
from service.fixes import repository as fixes
from service.good_runs import repository as good_runs
from service.groups import tables as groups
from service.incidents import tables as incidents
from service.jobs import tables as jobs
from service.learning import tables as learning
from service.nodes import tables as nodes
from service.people import tables as people
from service.reports import tables as reports
from service.resubmissions import tables as resubmissions
from service.second_reader import repository as second_reader
from service.sql.types import metadata
from service.statistics import tables as statistics

MODULES = (
    dead_letters,
    deliveries,
    drift,
    task_leases,
    failures,
    feedback,
    fixes,
    good_runs,
    groups,
    incidents,
    jobs,
    learning,
    nodes,
    people,
    reports,
    resubmissions,
    second_reader,
    statistics,
)

__all__ = ["MODULES", "metadata"]
