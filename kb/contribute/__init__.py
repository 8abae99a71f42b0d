"""Bringing incidents in: drafting, checking and comparing them."""
