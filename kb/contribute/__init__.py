"""Bringing incidents in: checking them."""
