"""Clustering: rows of small files are rewritten into larger ones, in an order that queries like."""
