"""A package in name only, so that tests can import ``tests.fixtures``."""
