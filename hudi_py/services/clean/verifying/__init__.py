"""A second, independent planner that checks plans."""
