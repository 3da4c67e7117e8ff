"""What a clean would delete: the situation of the table, and the plan made of it."""
