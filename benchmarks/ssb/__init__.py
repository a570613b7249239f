"""The Star Schema Benchmark (O'Neil, O'Neil, Chen, Revilak 2009): 13 queries over one fact table and four dimensions."""
