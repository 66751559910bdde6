"""Creates the log storage from its options."""

from pathlib import Path

from service.log_storage.bucket_process import IsolatedBucket
from service.log_storage.files import FileObjects
from service.log_storage.log_bodies import DatabaseLogs, LogBodies, ObjectLogs
from service.log_storage.options import LogStorageOptions
from service.telemetry import Telemetry


def build(options: LogStorageOptions | None, telemetry: Telemetry) -> LogBodies:
    """The log storage: the database without options.

    Raises:
        ConfigurationError: the client of the storage is not installed or refuses the options.
    """
    if options is None:
        return DatabaseLogs()
    if options.scheme == "file":
        return ObjectLogs(FileObjects(Path(options.folder)), telemetry)
    return ObjectLogs(IsolatedBucket(options), telemetry)
