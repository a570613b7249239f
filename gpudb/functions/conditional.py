"""Functions of conditions."""
