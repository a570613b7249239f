"""Bit operations on integers."""
