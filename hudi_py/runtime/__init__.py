"""Clock, log and randomness: everything outside the process that is not storage."""
