"""Incident records and the diagnosis built on them."""

__version__ = "0.1.0"
