"""What an incident is and how a diagnosis is made."""

__version__ = "0.1.0"
