"""The streaming sink: exactly once through failures and restarts, in plain files."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kill_tree import kill_tree
from lockgate import Job, JobOptions, forget_transactions, jobs
from lockgate.stores.local import LocalStore
from pyspark.errors import StreamingQueryException


class Died(BaseException):
    """As a process that is killed."""


QUERY = Path(__file__).with_name("stream_query.py")


def feed(directory: Path, files: int, rows: int = 50) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        lines = "".join(json.dumps({"id": number * rows + n, "p": n % 3}) + "\n" for n in range(rows))
        (directory / f"{number:04d}.json").write_text(lines)


def run_query(spark: Any, base: Path, **options: str) -> Any:
    reader = spark.readStream.schema("id long, p long").option("maxFilesPerTrigger", 2)
    return (
        reader.json(str(base / "in"))
        .writeStream.format("lockgate")
        .options(partitionBy="p", checkpointLocation=str(base / "checkpoint"), **options)
        .trigger(availableNow=True)
        .start(str(base / "out"))
    )


def rows(spark: Any, base: Path) -> list[int]:
    return sorted(row["id"] for row in spark.read.parquet(str(base / "out")).collect())


def test_a_stream_writes_each_batch_once(spark, tmp_path) -> None:
    feed(tmp_path / "in", 6)
    run_query(spark, tmp_path).awaitTermination()
    assert rows(spark, tmp_path) == list(range(300))
    assert not list((tmp_path / "out").glob("_lockgate/jobs/*"))
    assert not list((tmp_path / "out").glob("_spark_metadata")), "readers need to know of no log"


def forget_last_commit(base: Path) -> int:
    """As where Spark died after our commit and before it wrote its own: the last batch, which is told, runs again."""
    commits = sorted((base / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    commits[-1].unlink()
    commits[-1].with_name(f".{commits[-1].name}.crc").unlink()
    return int(commits[-1].name)


@pytest.mark.parametrize("protocol", ["manifest", "v1", "v2", "direct", "stocator", "markers"])
def test_a_batch_that_runs_again_changes_nothing(spark, tmp_path, protocol) -> None:
    """By v2 and direct its files had the names of those that were committed: it was refused at every start, and who
    deleted the file that the error named lost its rows."""
    options = {"protocol": protocol, "accept_unsafe": "true"}
    feed(tmp_path / "in", 4)
    run_query(spark, tmp_path, **options).awaitTermination()
    batch = forget_last_commit(tmp_path)
    query = run_query(spark, tmp_path, **options)
    query.awaitTermination()
    assert batch in [progress["batchId"] for progress in query.recentProgress], "it ran again"
    written = (tmp_path / "out").glob("p=*/part-*.parquet")
    told = [pq.read_metadata(file).metadata.get(b"lockgate.attempt") for file in written]
    assert None not in told, "no two runs of a batch write the same bytes"
    assert rows(spark, tmp_path) == list(range(200))
    feed(tmp_path / "in", 5)
    run_query(spark, tmp_path, **options).awaitTermination()
    assert rows(spark, tmp_path) == list(range(250))
    assert not list((tmp_path / "out").glob("_lockgate/jobs/*"))


def test_a_batch_whose_dead_driver_had_begun_its_commit_is_finished_and_then_done(spark, tmp_path, monkeypatch) -> None:
    """Its job was left as it was, and its files kept the batch from running for ever."""
    options = {"protocol": "direct", "accept_unsafe": "true", "alive_seconds": "0"}
    feed(tmp_path / "in", 2)
    run_query(spark, tmp_path, **options).awaitTermination()
    stream = json.loads((tmp_path / "checkpoint/metadata").read_text())["id"]
    feed(tmp_path / "in", 3)

    job = Job(
        tmp_path / "out",
        JobOptions(protocol="direct", accept_unsafe=True, txn_id=f"{stream}/1"),
        job_id=f"{stream}-00001-deadrun0",
    )
    job.setup()
    attempt = job.task_attempt(0)
    attempt.setup()
    for number, part in enumerate(sorted((tmp_path / "out").glob("p=*/part-00000-*.parquet"))):
        path = part.relative_to(tmp_path / "out").as_posix().replace("-00000.", "-00001.")
        with attempt.open(path) as file:
            pq.write_table(pa.table({"id": pa.array(range(100 + number, 150, 3), pa.int64())}), file)
    create = LocalStore.create_file

    async def die(store, path, content, **named):
        created = await create(store, path, content, **named)
        if b'"phase":"moving"' in content:
            raise Died
        return created

    with monkeypatch.context() as patched, pytest.raises(Died):
        patched.setattr(LocalStore, "create_file", die)
        job.commit([attempt.commit({"rows_written": 50})])
    with contextlib.suppress(StreamingQueryException):
        run_query(spark, tmp_path, **options).awaitTermination()
    run_query(spark, tmp_path, **options).awaitTermination()
    assert rows(spark, tmp_path) == list(range(150))


def test_a_restored_checkpoint_whose_batch_holds_other_rows_is_told_and_loses_none(spark, tmp_path) -> None:
    """The rows that came since were skipped with a batch of the same number, and the query went on."""
    feed(tmp_path / "in", 2)
    run_query(spark, tmp_path).awaitTermination()
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "backup")
    feed(tmp_path / "in", 4)
    run_query(spark, tmp_path).awaitTermination()
    assert rows(spark, tmp_path) == list(range(200))
    shutil.rmtree(tmp_path / "checkpoint")
    shutil.copytree(tmp_path / "backup", tmp_path / "checkpoint")
    (tmp_path / "in" / "0003.json").unlink()
    with pytest.raises(Exception, match=r"batch 1 of query \S+ was committed before, with 100 rows, and now has 50"):
        run_query(spark, tmp_path).awaitTermination()
    assert rows(spark, tmp_path) == list(range(200))
    run_query(spark, tmp_path, changedBatch="skip").awaitTermination()
    assert rows(spark, tmp_path) == list(range(200))


def test_a_restored_checkpoint_whose_batch_is_forgotten_is_told_and_loses_none(spark, tmp_path) -> None:
    """What came since was skipped without a word, with batches of whose numbers the table remembers no rows."""
    feed(tmp_path / "in", 2)
    query = run_query(spark, tmp_path)
    query.awaitTermination()
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "backup")
    feed(tmp_path / "in", 6)
    run_query(spark, tmp_path).awaitTermination()
    # As a stream does by itself once it is a thousand batches further.
    forget_transactions(str(tmp_path / "out"), query.id, up_to=1)
    shutil.rmtree(tmp_path / "checkpoint")
    shutil.copytree(tmp_path / "backup", tmp_path / "checkpoint")
    with pytest.raises(Exception, match=r"batch 1 of query \S+ is one of those that were committed long ago.* has 100"):
        run_query(spark, tmp_path).awaitTermination()
    assert rows(spark, tmp_path) == list(range(300))
    run_query(spark, tmp_path, changedBatch="skip").awaitTermination()
    assert rows(spark, tmp_path) == list(range(300))


def test_a_batch_that_was_empty_and_now_has_rows_is_told(spark, tmp_path) -> None:
    """A summary leaves out what is zero, and so there was nothing to compare with: the rows were skipped, untold."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0000.json").write_text("\n")
    query = run_query(spark, tmp_path)
    query.awaitTermination()
    (tmp_path / "checkpoint" / "commits" / "0").unlink()
    (tmp_path / "checkpoint" / "commits" / ".0.crc").unlink()
    feed(tmp_path / "in", 1)
    with pytest.raises(Exception, match=r"batch 0 of query \S+ was committed before, with 0 rows, and now has 50"):
        run_query(spark, tmp_path).awaitTermination()


def test_complete_mode_replaces_the_output(spark, tmp_path) -> None:
    feed(tmp_path / "in", 4)
    counted = spark.readStream.schema("id long, p long").option("maxFilesPerTrigger", 2).json(str(tmp_path / "in"))
    query = (
        counted.groupBy("p").count().writeStream.format("lockgate").outputMode("complete")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )  # fmt: skip
    query.awaitTermination()
    back = {row["p"]: row["count"] for row in spark.read.parquet(str(tmp_path / "out")).collect()}
    assert back == {0: 68, 1: 68, 2: 64}


@pytest.mark.parametrize("protocol", ["v2", "stocator"])
def test_abortable_a_batch_whose_first_task_to_end_has_failed_leaves_nothing(spark, tmp_path, protocol) -> None:
    """Spark aborts it without a task's message, and lets its other tasks go on for two seconds. By other protocols one
    that begins late may set the job up again, and nobody sees what it writes."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0000.json").write_text("".join(f'{{"id": {n}}}\n' for n in range(8)))
    out = tmp_path / "out"

    def fail_or_wait(batches: Any) -> Any:
        from pyspark import TaskContext

        for batch in batches:
            if TaskContext.get().partitionId() == 0:
                while not list(out.rglob("job.json")):  # a task has set the job up
                    time.sleep(0.05)
                raise RuntimeError("told to fail")
            time.sleep(1.2)
            yield batch

    stream = spark.readStream.schema("id long").json(str(tmp_path / "in")).repartition(2)
    query = (
        stream.mapInArrow(fail_or_wait, "id long").writeStream.format("lockgate")
        .options(protocol=protocol, accept_unsafe="true", checkpointLocation=str(tmp_path / "checkpoint"))
        .trigger(availableNow=True).start(str(tmp_path / "out"))
    )  # fmt: skip
    with pytest.raises(Exception, match="told to fail"):
        query.awaitTermination()

    def known() -> list[Any]:
        # A task of v2 that comes late may leave an empty directory in `_temporary`, as its page says.
        return [job for job in jobs(str(out)) if not job.job_id.startswith("unknown-")]

    ends = time.monotonic() + 120
    while (known() or list(out.rglob("*.parquet"))) and time.monotonic() < ends:
        time.sleep(0.5)
    time.sleep(3)  # the other task has two seconds of grace
    assert known() == []
    assert not list(out.rglob("*.parquet"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"txn_id": "x"}, "leave the options"),
        ({"conflict": "fail"}, "one batch only"),
        ({"fromat": "csv"}, "format"),
        ({"changedBatch": "maybe"}, "changedBatch"),
    ],
)
def test_a_bad_option_of_a_stream_is_told(spark, tmp_path, options, message) -> None:
    feed(tmp_path / "in", 1)
    with pytest.raises(Exception, match=message):
        run_query(spark, tmp_path, **options).awaitTermination()


def forget_a_checkpoint_without_a_batch(checkpoint: Path) -> None:
    """Do what Spark asks for where it was killed while it wrote its first offset: no batch has begun, and it refuses
    the half of a file that it left (STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY)."""
    if checkpoint.exists() and not (checkpoint / "offsets" / "0").exists():
        shutil.rmtree(checkpoint)


@pytest.mark.timeout(3600)
def test_exactly_once_through_kills_and_restarts(java, spark, tmp_path) -> None:
    seed = int(os.environ.get("TEST_SEED", time.time_ns() % 10**6))
    print(f"seed {seed}")
    chance = random.Random(seed)
    kills = int(os.environ.get("TEST_KILLS", "2"))
    feed(tmp_path / "in", 6 * kills, rows=20)
    killed = 0
    for _ in range(4 * kills):
        forget_a_checkpoint_without_a_batch(tmp_path / "checkpoint")
        process = subprocess.Popen([sys.executable, str(QUERY), str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        if killed == kills:
            assert process.wait(250) == 0
            break
        for line in process.stdout:
            if line.startswith("started"):
                break
        time.sleep(chance.uniform(0.0, 4.0))
        finished = process.poll() is not None
        kill_tree(process.pid)
        process.wait()
        killed += 1
        if finished:
            feed(tmp_path / "in", 6 * kills + killed * 4, rows=20)
    expected = sorted(
        json.loads(line)["id"] for path in (tmp_path / "in").glob("*.json") for line in path.read_text().splitlines()
    )
    assert killed == kills
    assert rows(spark, tmp_path) == expected
