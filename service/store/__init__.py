"""The only package that speaks SQL: tables, unit of work, repositories, statistics."""
