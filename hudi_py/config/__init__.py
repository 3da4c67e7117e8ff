"""Settings: all `hoodie.*` keys with their aliases and defaults, and typed, frozen configurations of them. Pure."""
