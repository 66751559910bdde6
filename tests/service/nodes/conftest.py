"""The stores of both databases."""

from tests.service.conftest import clock, dialect, empty_url, migrated_file, open_store, postgres, store, url

__all__ = ["clock", "dialect", "empty_url", "migrated_file", "open_store", "postgres", "store", "url"]
