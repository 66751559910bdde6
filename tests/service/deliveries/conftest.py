"""The store on both databases, as its own tests have it."""

from tests.service.conftest import clock, dialect, migrated_file, open_store, postgres, store, url

__all__ = ["clock", "dialect", "migrated_file", "open_store", "postgres", "store", "url"]
