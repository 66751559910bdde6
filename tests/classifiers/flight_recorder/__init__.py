"""Tests of the Flight Recorder reader."""
