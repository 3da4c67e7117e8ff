"""Files of which a person decides whether they are removed."""
