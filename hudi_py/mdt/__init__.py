"""The metadata table (`.hoodie/metadata`): what our instants mean for it."""
