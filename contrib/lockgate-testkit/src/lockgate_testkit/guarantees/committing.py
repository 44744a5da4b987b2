"""The job commit: what it makes visible, and to whom it is refused."""

from __future__ import annotations

import asyncio

from lockgate.model.errors import CommitFenced, CommitRefused, JobNotFound, OptionError
from lockgate.model.policies import POLICIES

from lockgate_testkit.bench import ContractBroken, expect, expect_same
from lockgate_testkit.guarantee import guarantee
from lockgate_testkit.job_bench import JobBench

OLD = {"p=1/old": b"1", "p=1/same": b"old", "p=2/old": b"2"}
"""What is there before."""


async def put(bench: JobBench, files: dict[str, bytes]) -> None:
    """Commit files, as an earlier job."""
    driver = await bench.driver().set_up()
    await driver.commit([await driver.task(files)])


@guarantee()
async def all_of_all_tasks_is_committed(bench: JobBench) -> None:
    """A commit makes all files of all committed tasks visible, with their contents; odd names are kept."""
    driver = await bench.driver().set_up()
    names = ["a b.parquet", "50%.csv", "x+y#z?.json", "ü/日本.orc", "t=10%3A00/p.parquet", "plain"]
    wanted = {f"{name}-{task}": f"{name} of {task}".encode() for name in names for task in range(3)}
    receipts = [
        await driver.task({path: content for path, content in wanted.items() if path.endswith(f"-{task}")}, task)
        for task in range(3)
    ]
    summary = await driver.commit(receipts)
    await bench.expect_visible(wanted, "after the commit")
    expect_same(summary.files, len(wanted), "the files of the summary")


@guarantee()
async def a_file_is_where_the_protocol_says(bench: JobBench) -> None:
    """A file is committed at the path that `final_path` says, and at no other: others look for it there."""
    driver = await bench.driver().set_up()
    attempts = [(driver.attempt(task), {f"p={task}/x.txt": b"x", f"{task}.txt": b"y"}) for task in range(2)]
    await driver.commit([await (await attempt.write(files)).commit() for attempt, files in attempts])
    said = sorted(attempt.named(path) for attempt, files in attempts for path in files)
    expect_same(await bench.paths(), said, "where files are after the commit, beside what final_path has said")


@guarantee()
async def empty_and_equal_files_are_committed(bench: JobBench) -> None:
    """A file without a byte is committed as every other; so are files of equal contents, each by its own name, of one
    task and of two. A task without files counts, and adds nothing."""
    driver = await bench.driver().set_up()
    files = [{"p=1/empty": b"", "p=1/a": b"equal", "p=2/a": b"equal"}, {"p=1/b": b"equal", "p=3/empty": b""}, {}]
    receipts = [await driver.task(of_task, task) for task, of_task in enumerate(files)]
    summary = await driver.commit(receipts)
    wanted = {path: content for of_task in files for path, content in of_task.items()}
    await bench.expect_visible(wanted, "after the commit")
    expect_same(summary.files, len(wanted), "the files of the summary")


@guarantee()
async def what_is_found_is_committed_without_receipts(bench: JobBench) -> None:
    """Without receipts, all tasks that have committed are."""
    driver = await bench.driver().set_up()
    for task in range(3):
        await driver.task({f"f{task}": b"x"}, task)
    await driver.commit(None)
    await bench.expect_visible({f"f{task}": b"x" for task in range(3)}, "after the commit")


@guarantee()
async def an_append_leaves_what_is_there(bench: JobBench) -> None:
    """The policy `append` adds, and refuses a name that is taken; then nothing has changed."""
    await put(bench, OLD)
    driver = await bench.driver().set_up()
    await driver.commit([await driver.task({"p=1/new": b"new"})])
    await bench.expect_visible({**OLD, "p=1/new": b"new"}, "after an append")
    taken = await bench.driver().set_up()
    attempt = taken.attempt()
    seen = {**OLD, "p=1/new": b"new"}
    if (name := attempt.named("p=1/same")) != "p=1/same":  # no other job has a name that holds the attempt's
        await taken.run.store.write_file(name, OLD["p=1/same"])
    try:
        await attempt.write({"p=1/same": b"other", "p=9/new": b"new"})
        await taken.commit([await attempt.commit()])
    except Exception:
        await bench.give_up_what_shows(taken)
        await bench.expect_visible(seen, "after a commit was refused")
    else:
        raise ContractBroken("an append over a file that is there was not refused")


@guarantee()
async def a_replace_replaces_just_what_it_says(bench: JobBench) -> None:
    """`replace` leaves the job's files alone, `replace-partitions` only in the directories that it writes; or the
    protocol refuses the policy, before anything has changed."""
    for policy, kept in (("replace", {}), ("replace-partitions", {"p=2/old": b"2"})):
        place = bench.another()
        await put(place, OLD)
        try:
            driver = await place.driver(conflict=policy).set_up()
            await driver.commit([await driver.task({"p=1/new": b"new"})])
        except (CommitRefused, OptionError):
            await place.expect_visible(OLD, f"after {policy} was refused")
        else:
            await place.expect_visible({**kept, "p=1/new": b"new"}, f"after {policy}")


@guarantee()
async def the_policies_that_it_names_are_taken(bench: JobBench) -> None:
    """Of Lockgate's conflict policies those are taken at setup that the protocol names in `policies`, all of them if it
    names none; the others are refused. `lockgate advise` goes by what it names."""
    named = bench.protocol.policies
    for policy in POLICIES:
        below = ("p=1",) if policy == "replace-below" else ()
        driver = bench.another().driver(conflict=policy, replace_below=below)
        try:
            await driver.set_up()
        except OptionError as error:
            expect(named is not None and policy not in named, f"a job with {policy} was refused at setup: {error.what}")
        else:
            expect(named is None or policy in named, f"a job with {policy} was set up, which `policies` does not name")


@guarantee()
async def one_driver_commits(bench: JobBench) -> None:
    """Of drivers that commit one job at once, one does; the others hear that it is done, or who does it."""
    driver = await bench.driver("twins").set_up()
    receipts = [await driver.task({f"f{task}": b"x"}, task) for task in range(3)]
    answers = await asyncio.gather(*(driver.commit(receipts) for _ in range(4)), return_exceptions=True)
    won = [answer for answer in answers if not isinstance(answer, BaseException)]
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, CommitFenced | JobNotFound):
            raise answer
    expect_same(bool(won), True, "that any of them was told that it is committed")
    await bench.expect_visible({f"f{task}": b"x" for task in range(3)}, "after the commits")


@guarantee()
async def a_committed_job_is_not_committed_again(bench: JobBench) -> None:
    """A second commit of a job is refused, and changes nothing."""
    driver = await bench.driver().set_up()
    receipt = await driver.task({"a": b"a"})
    await driver.commit([receipt])
    try:
        await driver.commit([receipt])
    except (CommitFenced, JobNotFound):
        await bench.expect_visible({"a": b"a"}, "after the second commit")
    else:
        raise ContractBroken("a second commit of one job was not refused")


@guarantee()
async def jobs_side_by_side_both_commit(bench: JobBench) -> None:
    """Two jobs that append to one destination at once leave what one after the other would."""
    drivers = [await bench.driver().set_up() for _ in range(2)]
    receipts = [await driver.task({f"p={n}/f": b"x", f"both/f{n}": b"x"}) for n, driver in enumerate(drivers)]
    await asyncio.gather(*(driver.commit([receipt]) for driver, receipt in zip(drivers, receipts, strict=True)))
    wanted = {f"p={n}/f": b"x" for n in range(2)} | {f"both/f{n}": b"x" for n in range(2)}
    await bench.expect_visible(wanted, "after both commits")
