"""Recovery: what a crash left, found and judged as a whole; put right by the services whose work it was."""
