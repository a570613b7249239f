"""Figures of our engine alone: memory speed, fixed costs, loading, memory and start-up; see `figures`."""
