"""What one clean leaves written down for the next: own files under ``.aux``."""
