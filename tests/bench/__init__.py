"""Benchmarks, with the compiled modules where there are some, also in the processes that they start."""

from service import native_modules

native_modules.use()
