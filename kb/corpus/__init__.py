"""The documents of a diagnosis: where they come from, their tiers, and the index of each."""
