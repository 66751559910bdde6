"""Tests of the package classifiers, in the folders of its packages."""
