"""TPC-H's 22 queries over data made by PyPI's tpchgen-cli.  Not an audited TPC result: one stream, no refresh functions."""
