"""Tests of the project itself: conventions, documents, dependencies, packaging, deployment files."""
