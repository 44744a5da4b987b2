"""Task attempts, before the job commits."""

from __future__ import annotations

from lockgate.model.errors import CommitRefused, LockgateError

from lockgate_testkit.bench import ContractBroken, expect_same
from lockgate_testkit.guarantee import guarantee
from lockgate_testkit.job_bench import JobBench


@guarantee("uncommitted_invisible")
async def nothing_of_an_uncommitted_attempt_is_seen(bench: JobBench) -> None:
    """While a task attempt writes, readers see nothing of it."""
    driver = await bench.driver().set_up()
    await driver.attempt().write({"p=1/a": b"a", "b": b"b"})
    await bench.expect_visible({}, "while an attempt writes")


@guarantee("uncommitted_invisible", "committed_invisible")
async def nothing_of_a_committed_attempt_is_seen(bench: JobBench) -> None:
    """Nor of one that has committed, before the job commits."""
    driver = await bench.driver().set_up()
    await driver.task({"p=1/a": b"a", "b": b"b"})
    await bench.expect_visible({}, "before the job commits")


@guarantee()
async def an_aborted_attempt_leaves_nothing(bench: JobBench) -> None:
    """An attempt that was aborted, before or after its commit, leaves nothing, and its job commits the others."""
    driver = await bench.driver().set_up()
    early = await driver.attempt(0).write({"a": b"early"})
    await early.abort()
    late = await driver.attempt(1).write({"b": b"late"})
    await late.commit()
    await late.abort()
    receipts = [await driver.task({"a": b"right"}, 0, 1), await driver.task({"b": b"right"}, 1, 1)]
    await driver.commit(receipts)
    await bench.expect_visible({"a": b"right", "b": b"right"}, "after the commit")


@guarantee()
async def an_aborted_attempt_is_not_committed(bench: JobBench) -> None:
    """A job commit that holds the receipt of an attempt that was aborted since is refused; nothing is seen of it."""
    driver = await bench.driver().set_up()
    attempt = await driver.attempt().write({"a": b"aborted"})
    receipt = await attempt.commit()
    await attempt.abort()
    try:
        await driver.commit([receipt])
    except CommitRefused:
        await bench.expect_visible({}, "after the commit was refused")
    else:
        raise ContractBroken("the receipt of an aborted attempt was accepted")


@guarantee("task_commit_repeatable")
async def a_task_commit_that_is_repeated_counts_once(bench: JobBench) -> None:
    """A task commit whose report was lost is repeated, with the same receipt, and its files are committed once."""
    driver = await bench.driver().set_up()
    attempt = await driver.attempt().write({"a": b"a"})
    receipt = await attempt.commit()
    expect_same(await attempt.commit(), receipt, "the receipt of the second commit")
    await driver.commit([receipt])
    await bench.expect_visible({"a": b"a"}, "after the commit")


@guarantee("task_commit_repeatable")
async def the_attempt_whose_receipt_is_held_is_committed(bench: JobBench) -> None:
    """Of two attempts that both committed, the one whose receipt the driver holds counts, whoever came last."""
    for held in (0, 1):
        place = bench.another()
        driver = await place.driver().set_up()
        receipts = [await driver.task({f"of-{attempt}": b"x"}, 0, attempt) for attempt in (0, 1)]
        await driver.commit([receipts[held]])
        await place.expect_visible({f"of-{held}": b"x"}, f"after the commit of attempt {held}")


@guarantee()
async def an_aborted_job_leaves_nothing(bench: JobBench) -> None:
    """An abort before the job commit leaves nothing to be seen, and may be repeated."""
    driver = await bench.driver().set_up()
    await driver.task({"p=1/a": b"a"})
    await driver.abort()
    await driver.abort()
    await bench.expect_visible({}, "after the abort")


@guarantee("holds_through_partition")
async def a_late_attempt_adds_nothing(bench: JobBench) -> None:
    """An attempt that was cut off, and goes on after its job has committed, adds nothing."""
    driver = await bench.driver().set_up()
    late = await driver.attempt(1).write({"late": b"x"})
    await driver.commit([await driver.task({"a": b"a"})])
    try:
        await late.commit()
        await driver.attempt(2).write({"later": b"x"})
    except LockgateError:
        pass
    await bench.expect_visible({"a": b"a"}, "after a late attempt has come")
