"""Dates and timestamps."""
