"""Views format a `Diagnosis`; they decide nothing."""
