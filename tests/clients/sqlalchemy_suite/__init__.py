"""SQLAlchemy's own tests of a dialect (`sqlalchemy.testing.suite`), run on ours in a process of their own.

    python -m pytest -c /dev/null --rootdir tests/clients/sqlalchemy_suite -p tests.clients.sqlalchemy_suite.plugin
        --dburi gpudb:// --requirements tests.clients.sqlalchemy_suite.requirements:Requirements
        tests/clients/sqlalchemy_suite/suite.py

Their plugin takes the whole of pytest over, which is why no file here is named so that ours would collect it.
"""
