"""The group-by and join questions of h2o.ai's db-benchmark, over tables of our own generator with its columns."""
