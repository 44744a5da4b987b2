"""Transaction ids of Spark's own writers: an id counts for the write that was given it, and for no other that Spark
hands it to. One that counted for others would leave their rows out, without a word."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NOT_GIVEN = "a transaction id came with this write that its statement has not given"


def rows_of(spark: Any) -> Any:
    return spark.range(0, 60, 1, 2).selectExpr("id", "id % 3 AS p", "CAST(id AS STRING) AS s")


@contextmanager
def made(spark: Any, name: str, columns: str, options: str = "") -> Iterator[str]:
    spark.sql(f"CREATE TABLE {name} ({columns}) USING parquet {options}")
    yield name
    spark.sql(f"DROP TABLE {name}")


@pytest.fixture
def table(native: Any, tmp_path: Path) -> Iterator[str]:
    place = f"PARTITIONED BY (a, b) LOCATION '{tmp_path / 'lg_x'}'"
    with made(native, "lg_x", "id BIGINT, a INT, b INT", place) as name:
        yield name


@pytest.fixture
def plain(native: Any, tmp_path: Path) -> Iterator[str]:
    """A table whose options hold nothing, and whose rows are numbers."""
    with made(native, "lg_plain_x", "id BIGINT", f"LOCATION '{tmp_path / 'plain'}'") as name:
        yield name


@pytest.fixture
def keeping(native: Any, tmp_path: Path) -> Iterator[str]:
    """A table that keeps an id among its options."""
    kept = f"OPTIONS ('lockgate.txnId' = 'kept') PARTITIONED BY (p) LOCATION '{tmp_path / 'keeping'}'"
    with made(native, "lg_keeping", "id BIGINT, p INT", kept) as name:
        yield name


def counts(spark: Any, table: str) -> dict[tuple[int, int], int]:
    return {(row.a, row.b): row.n for row in spark.sql(f"SELECT a, b, count(*) n FROM {table} GROUP BY a, b").collect()}


def test_a_transaction_id_that_a_table_keeps_does_not_leave_out_later_writes(native: Any, tmp_path: Path) -> None:
    """Spark keeps the options of the statement that creates a table, and hands them to every write to it."""
    rows = rows_of(native)
    location = f"LOCATION '{tmp_path / 'kept'}'"
    with pytest.raises(Exception, match="a statement that creates a table cannot have a transaction id"):
        native.sql(f"CREATE TABLE lg_kept USING orc OPTIONS ('lockgate.txnId' = 'a') {location} AS SELECT 1 AS id")
    with pytest.raises(Exception, match="a statement that creates a table cannot have a transaction id"):
        rows.write.option("lockgate.txnId", "a").option("path", str(tmp_path / "kept")).saveAsTable("lg_kept")
    assert not native.catalog.tableExists("lg_kept")
    native.sql(f"CREATE TABLE lg_kept (id BIGINT) USING parquet OPTIONS ('lockgate.txnId' = 'a') {location}")
    try:
        native.sql("INSERT INTO lg_kept SELECT id FROM range(5)")
        native.sql("INSERT INTO lg_kept SELECT id FROM range(5)")
        native.range(5).write.insertInto("lg_kept")
        native.range(5).write.mode("append").saveAsTable("lg_kept")
        assert native.table("lg_kept").count() == 20
        native.sql("INSERT OVERWRITE lg_kept SELECT id FROM range(3)")
        assert native.table("lg_kept").count() == 3
    finally:
        native.sql("DROP TABLE lg_kept")


def test_a_transaction_id_of_an_insert_counts_and_one_that_spark_drops_is_refused(native: Any, table: str) -> None:
    for _ in range(2):
        native.sql(f"INSERT INTO {table} WITH ('lockgate.txnId' = 'b') SELECT id, 7, 7 FROM range(5)")
    assert counts(native, table)[7, 7] == 5
    if native.version < "4.1":
        return  # there `saveAsTable` keeps nothing of its options where the table exists
    again = native.sql("SELECT id, 8 AS a, 8 AS b FROM range(5)").write.mode("append").format("parquet")
    with pytest.raises(Exception, match=r"Spark does not pass options of saveAsTable on[^\n]*\n[^\n]*lockgate\.txnId"):
        again.option("lockgate.txnId", "c").partitionBy("a", "b").saveAsTable(table)
    assert (8, 8) not in counts(native, table)


def test_a_transaction_id_that_the_table_keeps_is_refused_when_it_is_asked_for_again(
    native: Any, tmp_path: Path
) -> None:
    """It was taken for the catalog's, which counts for no write."""
    rows = rows_of(native)
    told = rows.write.option("lockgate.txnId", "same").option("path", str(tmp_path / "kept"))
    told.mode("overwrite").saveAsTable("lg_again")
    try:
        if native.version >= "4.1":
            with pytest.raises(Exception, match="Spark does not pass options of saveAsTable on"):
                rows.write.mode("append").option("lockgate.txnId", "same").saveAsTable("lg_again")
        rows.write.mode("append").saveAsTable("lg_again")
        assert native.table("lg_again").count() == 120
    finally:
        native.sql("DROP TABLE lg_again")


def test_a_transaction_id_among_a_views_options_is_refused_rather_than_counted_for_each_write(
    native: Any, tmp_path: Path
) -> None:
    """The second write was left out, without a word."""
    path = str(tmp_path / "viewed")
    native.range(5).write.parquet(path)
    native.sql(f"CREATE TEMPORARY VIEW lg_view USING parquet OPTIONS (path '{path}', 'lockgate.txnId' 'x')")
    native.read.option("lockgate.txnId", "y").parquet(path).createOrReplaceTempView("lg_read")
    native.read.parquet(path).createOrReplaceTempView("lg_plain")
    for view in ("lg_view", "lg_read"):
        with pytest.raises(Exception, match=NOT_GIVEN):
            native.sql(f"INSERT INTO {view} SELECT id FROM range(5)")
    native.sql("INSERT INTO lg_plain SELECT id FROM range(5)")
    assert native.read.parquet(path).count() == 10


def test_a_transaction_id_of_save_as_table_is_refused_in_a_streams_batch_too(
    native: Any, table: str, tmp_path: Path
) -> None:
    """There the outermost statement is the stream's, and says nothing of tables."""
    rows_of(native).write.parquet(str(tmp_path / "source"))
    wanted = {"lg_new": "a statement that creates a table cannot have a transaction id"}
    if native.version >= "4.1":
        wanted[table] = "Spark does not pass options of saveAsTable on"

    for name, refusal in wanted.items():

        def write(batch: Any, number: int, name: str = name) -> None:
            rows = batch.selectExpr("id", "8 AS a", "8 AS b").write.mode("append").partitionBy("a", "b")
            rows.option("lockgate.txnId", f"a-query/{number}").saveAsTable(name)

        stream = native.readStream.schema("id BIGINT").parquet(str(tmp_path / "source"))
        query = stream.writeStream.foreachBatch(write).option(
            "checkpointLocation", str(tmp_path / f"checkpoint-{name}")
        )
        with pytest.raises(Exception, match=refusal):
            query.trigger(availableNow=True).start().awaitTermination()
    assert (8, 8) not in counts(native, table)
    assert not native.catalog.tableExists("lg_new")


def test_a_transaction_id_that_a_table_keeps_counts_for_no_part_of_a_statement_that_writes_to_several(
    native: Any, plain: str, keeping: str
) -> None:
    for _ in range(2):
        native.sql(f"FROM range(5) INSERT INTO {keeping} SELECT id, 0 INSERT INTO {plain} SELECT id")
    assert native.table(keeping).count() == 10
    for part in range(3):
        native.sql(
            f"FROM range(5) INSERT OVERWRITE {keeping} PARTITION (p = {part}) SELECT id INSERT INTO {plain} SELECT id"
        )
    assert sorted(row.p for row in native.table(keeping).collect()) == [0] * 5 + [1] * 5 + [2] * 5
    assert native.table(plain).count() == 25


def test_a_transaction_id_of_a_view_is_refused_in_a_statement_that_writes_to_several(
    native: Any, plain: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "viewed")
    native.range(5).write.parquet(path)
    native.read.option("lockgate.txnId", "y").parquet(path).createOrReplaceTempView("lg_read_x")
    with pytest.raises(Exception, match=NOT_GIVEN):
        native.sql(f"FROM range(5) INSERT INTO lg_read_x SELECT id INSERT INTO {plain} SELECT id")


def test_each_part_of_a_statement_has_the_transaction_id_that_it_gives(native: Any, plain: str, table: str) -> None:
    for _ in range(2):
        native.sql(
            f"FROM range(5) INSERT INTO {plain} WITH ('lockgate.txnId' = 'one') SELECT id "
            f"INSERT INTO {table} WITH ('lockgate.txnId' = 'other') SELECT id, 1, 1"
        )
    assert native.table(plain).count() == 5
    assert counts(native, table) == {(1, 1): 5}


def test_a_transaction_id_of_the_read_behind_a_view_of_a_table_is_refused(native: Any, plain: str) -> None:
    native.read.option("lockgate.txnId", "y").table(plain).createOrReplaceTempView("lg_of_table")
    native.sql(f"SELECT * FROM {plain} WITH ('lockgate.txnId' = 'y')").createOrReplaceTempView("lg_selected")
    with pytest.raises(Exception, match=NOT_GIVEN):
        native.sql("INSERT INTO lg_of_table SELECT id FROM range(5)")
    with pytest.raises(Exception, match="UNSUPPORTED_INSERT"):
        native.range(5).write.insertInto("lg_selected")
    native.read.table(plain).createOrReplaceTempView("lg_of_table")
    for _ in range(2):
        native.sql("INSERT INTO lg_of_table SELECT id FROM range(5)")
    assert native.table(plain).count() == 10


def test_a_transaction_id_of_a_read_does_not_stay_for_a_later_insert(native: Any, plain: str) -> None:
    native.read.option("lockgate.txnId", "y").table(plain).count()
    native.sql(f"INSERT INTO {plain} WITH ('lockgate.txnId' = 'one') SELECT id FROM range(5)")
    for _ in range(2):
        native.sql(f"INSERT INTO {plain} SELECT id FROM range(5)")
    native.sql(f"INSERT INTO {plain} WITH ('lockgate.txnId' = 'two') SELECT id FROM range(5)")
    assert native.table(plain).count() == 20


def test_a_transaction_id_of_an_earlier_read_is_refused_where_spark_keeps_its_relation(native: Any, plain: str) -> None:
    """With this setting Spark hands an insert the options of the statement that has asked for the table first."""
    setting = "spark.sql.legacy.readFileSourceTableCacheIgnoreOptions"
    native.conf.set(setting, "true")
    try:
        native.read.option("lockgate.txnId", "y").table(plain).count()
        for given in ("", "WITH ('lockgate.txnId' = 'two')"):
            with pytest.raises(Exception, match=NOT_GIVEN):
                native.sql(f"INSERT INTO {plain} {given} SELECT id FROM range(5)")
    finally:
        native.conf.unset(setting)
    native.sql(f"INSERT INTO {plain} WITH ('lockgate.txnId' = 'two') SELECT id FROM range(5)")
    assert native.table(plain).count() == 5


def test_a_transaction_id_counts_however_the_statement_says_it(native: Any, plain: str) -> None:
    scripting = "spark.sql.scripting.enabled"
    native.conf.set(scripting, "true")

    def insert(given: str) -> str:
        return f"INSERT INTO {plain} WITH ({given}) SELECT id FROM range(5)"

    execute = insert("'lockgate.txnId' = 'f'")
    script = insert("'lockgate.txnId' = 'g'")
    longer = insert("'lockgate.txnId' = 'i'")
    said = [
        insert("'lockgate.txnId' = 'a'"),
        insert("'LOCKGATE.TXNID' 'b'"),
        insert('lockgate.txnId = "c c"'),
        insert(r"'lockgate.txnId' = 'd\'d'"),
        f"WITH r AS (SELECT id FROM range(5)) INSERT INTO {plain} WITH ('lockgate.txnId' = 'e') SELECT id FROM r",
        f'EXECUTE IMMEDIATE "{execute}"',
        f"BEGIN {script}; END",
    ]
    try:
        for statement in said:
            for _ in range(2):
                native.sql(statement)
        if native.version >= "4.1":
            said.append("")
            for _ in range(2):
                native.sql(insert("'lockgate.txnId' = :id"), {"id": "h'h"})
        assert native.table(plain).count() == 5 * len(said)
        native.sql(f"BEGIN {longer}; INSERT INTO {plain} SELECT id FROM range(5); END")
        assert native.table(plain).count() == 5 * len(said) + 10
    finally:
        native.conf.unset(scripting)


def test_an_insert_to_a_directory_has_its_own_transaction_id(native: Any, tmp_path: Path) -> None:
    to = f"INSERT OVERWRITE DIRECTORY '{tmp_path / 'd'}' USING parquet OPTIONS ('lockgate.txnId' = '%s')"
    native.sql(f"{to % 'a'} SELECT id FROM range(5)")
    native.sql(f"{to % 'a'} SELECT id FROM range(7)")
    assert native.read.parquet(str(tmp_path / "d")).count() == 5
    native.sql(f"{to % 'b'} SELECT id FROM range(7)")
    assert native.read.parquet(str(tmp_path / "d")).count() == 7
