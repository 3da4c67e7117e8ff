"""Settings: every `hoodie.*` key with its aliases and default, and the frozen values made from them. Pure."""
