"""The public-domain PEP 249 suite (dbapi-compliance): 34 tests unmodified, and the two that a driver must write."""

import tempfile

import dbapi20

import gpudb


class TestInMemory(dbapi20.DatabaseAPI20Test):
    driver = gpudb
    connect_args = (":memory:",)

    def test_nextset(self):
        connection = self._connect()
        try:
            cursor = connection.cursor()
            self.executeDDL1(cursor)
            for statement in self._populate():
                cursor.execute(statement)
            assert cursor.nextset() is None, "an INSERT has no result set to skip to"
            table = f"{self.table_prefix}booze"
            cursor.execute(
                f"SELECT count(*) FROM {table}; DROP TABLE IF EXISTS no_such_table; SELECT name FROM {table}"
            )
            assert cursor.fetchone() == (len(self.samples),)
            assert cursor.nextset(), "there is a second result set"
            assert cursor.description[0][0] == "name"
            assert [row[0] for row in cursor.fetchall()] == self.samples
            assert cursor.nextset() is None, "there is no third"
        finally:
            connection.close()

    def test_setoutputsize(self):
        connection = self._connect()
        try:
            cursor = connection.cursor()
            long_text = "x" * 100_000
            cursor.setoutputsize(10)
            cursor.setoutputsize(10, 0)
            cursor.execute(f"SELECT '{long_text}'")
            assert cursor.fetchone() == (long_text,), "values are fetched whole whatever size was announced"
            cursor.close()
            self.assertRaises(gpudb.Error, cursor.setoutputsize, 10)
        finally:
            connection.close()


class TestInDirectory(TestInMemory):
    """The same over files, where the connection that cleans up meets what the test's connection left."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.connect_args = (f"{self.folder.name}/database",)


def test_all_other_tests_of_the_suite_are_inherited_unmodified():
    names = [name for name in dir(dbapi20.DatabaseAPI20Test) if name.startswith("test_")]
    inherited = [n for n in names if getattr(TestInMemory, n) is getattr(dbapi20.DatabaseAPI20Test, n)]
    assert len(inherited) == 34
    assert set(names) - set(inherited) == {"test_nextset", "test_setoutputsize"}
