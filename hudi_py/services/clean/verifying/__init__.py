"""A second, independent planner, and what it says of a plan."""
