"""Toolkit for SQL that every repository shares: bulk reads and writes, types, packing, paging."""
