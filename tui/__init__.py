"""The screen that stays open: the Textual app."""
