"""Why a file is kept or deleted, and what would have to happen for it to go."""
