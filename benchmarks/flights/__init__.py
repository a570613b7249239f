"""HeavyDB's flights benchmark: Q1-Q17 over one wide table of flights."""
