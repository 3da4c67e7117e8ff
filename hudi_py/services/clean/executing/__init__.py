"""Carries out a stored plan after checking that it is still valid."""
