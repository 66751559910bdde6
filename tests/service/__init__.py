"""Tests of the package service, in the folders of its packages."""
