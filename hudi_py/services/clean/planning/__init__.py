"""Plans a clean: reads the situation of the table, and makes a plan of it."""
