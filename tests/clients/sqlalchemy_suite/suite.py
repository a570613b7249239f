"""All of SQLAlchemy's tests of a dialect; which of them apply is in requirements.py."""

from sqlalchemy.testing.suite import *  # noqa: F403
