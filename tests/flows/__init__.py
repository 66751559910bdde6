"""Tests of whole flows through running programs, servers and pages."""
