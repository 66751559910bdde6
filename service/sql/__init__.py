"""Toolkit for SQL that every repository shares: bulk writes, types, packing, paging."""
