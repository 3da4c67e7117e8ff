"""The one door to bytes at rest: a narrow protocol, one backend per kind of storage, wrappers for everything else."""
