"""Leases of readers: taken beside whatever else is going on, renewed, released."""
