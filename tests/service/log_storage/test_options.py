"""Addresses of the log storage."""

import pytest

from service import settings
from service.errors import ConfigurationError
from service.log_storage import build as log_storage
from service.log_storage.log_bodies import DatabaseLogs
from service.log_storage.options import LogStorageOptions
from service.telemetry import Telemetry


@pytest.mark.parametrize("url", ["s3://faultline-logs", "s3://logs/site-a/faultline", "gs://logs", "file:///srv/logs"])
def test_addresses_of_buckets_and_folders_are_accepted(url: str) -> None:
    assert settings.read({"FAULTLINE_LOG_STORE_URL": url}).log_storage() == LogStorageOptions(url)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            " ",
            "logs",
            "/srv/logs",
            "http://host/bucket",
            "s3://",
            "s3:///prefix",
            "file://host/folder",
            "file:///",
        ),
        *("s3://key:secret@bucket/logs", "s3://bucket/logs?token=secret", "s3://bucket/#x", "file:///srv/../etc"),
        *("s3://Bucket", "s3://bucket/a b", "memory://x"),
    ],
)
def test_another_address_is_refused_by_the_name_of_its_setting_and_never_printed_with_a_login(url: str) -> None:
    with pytest.raises(ConfigurationError, match="FAULTLINE_LOG_STORE_URL") as caught:
        settings.read({"FAULTLINE_LOG_STORE_URL": url})
    assert "secret" not in str(caught.value)


def test_without_an_address_logs_stay_in_the_database() -> None:
    options = settings.read({}).log_storage()
    assert isinstance(log_storage.build(options, Telemetry()), DatabaseLogs)


def test_a_folder_that_does_not_exist_is_reported_at_the_start(tmp_path: object) -> None:
    storage = log_storage.build(LogStorageOptions(f"file://{tmp_path}/absent"), Telemetry())
    with pytest.raises(ConfigurationError, match="FAULTLINE_LOG_STORE_URL"):
        storage.check()
