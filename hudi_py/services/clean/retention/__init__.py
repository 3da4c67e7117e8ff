"""Which file slices a policy keeps, and why. Pure."""
