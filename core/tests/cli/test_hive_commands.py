"""`lockgate plan` and `commit` of what a job of Hive's has left."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from command_line import run, run_json
from hive_left import HIVE
from local_acts import Died
from lockgate import Job
from lockgate.api.jobs import commit
from lockgate.cli.documents import DOCUMENTS
from lockgate.engine.record.record_log import RecordLog
from lockgate.errors import OptionError
from lockgate.model.files import Rename
from lockgate.protocols.hive import adopt
from lockgate.stores.local import LocalStore
from test_documents import unlike

STAGING = ".hive-staging_hive_1"
JOB = "hive-staging_hive_1.-ext-10000"


def leave(root: Path, *paths: str) -> None:
    for length, path in enumerate(paths, 1):
        file = root / STAGING / "_tmp.-ext-10000" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * length)


def test_plan_shows_each_choice_and_why(tmp_path: Path) -> None:
    leave(tmp_path, "ds=1/000005_0", "ds=1/000005_1", "000006_0")
    before = sorted(tmp_path.rglob("*"))
    chosen = ["-o", "duplicates=newest", "--protocol", "hive"]
    for command in (["plan", str(tmp_path), JOB], ["commit", "--plan", str(tmp_path), JOB]):
        status, found = run_json(*command, *chosen)
        assert status == 0
        assert found["choices"] == ["task_000005: attempt 1, not 0: its number is the highest"]
        assert found["sources_to_come"] is True
        status, out, _ = run(*command, *chosen)
        assert status == 0
        assert "task_000005\tattempt 1, not 0: its number is the highest" in out
    _, _, err = run("plan", str(tmp_path), JOB, *chosen)
    assert "The sources are not there yet: the commit first moves" in err
    assert sorted(tmp_path.rglob("*")) == before


def test_commit_refuses_what_is_not_decided_and_commits_what_is_named(tmp_path: Path) -> None:
    leave(tmp_path, "ds=1/000005_0", "ds=1/000005_1")
    command = ["commit", str(tmp_path), JOB, "--protocol", "hive", "--force"]
    status, _, err = run(*command)
    assert status == 1
    assert "duplicates=receipts" in err
    status, found = run_json(*command, "-o", "duplicates=receipts", "-o", "duplicate_attempts=000005_0")
    assert status == 0
    assert found["jobId"] == JOB
    status, out, _ = run("show", str(tmp_path))
    assert status == 0
    assert "task_000005\tattempt 0, not 1: " in out, "which attempt was chosen can be asked afterwards"
    assert (tmp_path / "ds=1/000005_0").exists()
    assert not (tmp_path / "ds=1/000005_1").exists()


def test_jobs_lists_what_hive_has_left_for_who_asks_for_hives(tmp_path: Path) -> None:
    leave(tmp_path, "000006_0")
    status, found = run_json("jobs", str(tmp_path), "-o", "protocol=hive")
    assert status == 0
    assert [job["job_id"] for job in found] == [JOB]


def test_who_looks_for_what_hive_has_left_is_told_how_to_ask(tmp_path: Path) -> None:
    leave(tmp_path, "000006_0")
    for protocol in ([], ["--protocol", "hive"]):
        status, _, err = run("plan", str(tmp_path), JOB if not protocol else "another", *protocol)
        assert status == 2
        assert "-o protocol=hive" in err


def test_a_task_that_is_left_out_is_named_before_and_after(tmp_path: Path) -> None:
    leave(tmp_path, "ds=1/000006_0", "ds=1/_tmp.000007_0")
    chosen = [str(tmp_path), JOB, "--protocol", "hive"]
    status, out, err = run("plan", *chosen)
    assert status == 0
    assert "task_000007\thas begun, and not committed" in out
    assert "1 task left out: commit takes --force for that" in err
    status, found = run_json("plan", *chosen)
    assert (status, found["left_out"]) == (0, ["task_000007"])
    status, out, _ = run("commit", *chosen, "--force")
    assert status == 0
    assert "task_000007\thas begun, and not committed" in out
    status, out, _ = run("show", str(tmp_path))
    assert "task_000007\thas begun, and not committed" in out


def test_what_to_do_next_with_a_job_of_hives_can_be_given_as_it_is_printed(tmp_path: Path) -> None:
    """The command lacked the protocol, without which there is no such job."""
    leave(tmp_path, "ds=1/_tmp.000006_0")
    for command in (["plan"], ["commit", "--force"]):
        status, _, err = run(*command, str(tmp_path), JOB, "--protocol", "hive")
        assert status == 1
        assert f"lockgate abort {tmp_path.as_uri()} {JOB} --protocol hive --force deletes the job" in err
        assert "job.commit" not in err
    status, out, _ = run("recover", str(tmp_path), JOB, "-o", "protocol=hive")
    assert f"{JOB} --protocol hive --force" in out


def test_recover_of_what_hive_has_left_says_how_to_ask_for_it(tmp_path: Path) -> None:
    leave(tmp_path, "000006_0")
    status, _, err = run("recover", str(tmp_path), JOB)
    assert status == 2
    assert "of what Hive has left there: " in err and "-o protocol=hive" in err
    status, _, err = run("recover", str(tmp_path), "another", "--protocol", "hive")
    assert (status, "no trace of a job another" in err) == (2, True)
    assert "of what Hive" not in err


def test_jobs_and_recover_take_the_protocol_by_its_own_option(tmp_path: Path) -> None:
    leave(tmp_path, "000006_0")
    status, found = run_json("jobs", str(tmp_path), "--protocol", "hive")
    assert (status, [job["job_id"] for job in found]) == (0, [JOB])
    for more in (["--protocol", "hive"], ["-o", "protocol=hive"]):
        given = run("recover", str(tmp_path), JOB, *more)
        assert "no trace" not in "".join(given[1:])
    assert given == run("recover", str(tmp_path), JOB, "--protocol", "hive")


async def died(*_: object, **__: object) -> None:
    raise Died


def dies_in_its_commit(root: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """What Hive has left, of which a commit has been killed."""
    leave(root, "000006_0", "000007_0")
    claims, renames = RecordLog.claim, LocalStore.rename_files

    async def claimed(*arguments: object, **named: object) -> None:
        await claims(*arguments, **named)
        raise Died

    async def moves_one(store: LocalStore, files: Sequence[Rename], *more: object) -> object:
        if not files[0].target.startswith("0000"):
            return await renames(store, files, *more)
        await renames(store, files[:1], *more)
        raise Died

    ends = {
        "once it is claimed": (RecordLog, "claim", claimed),
        "before it is taken": (adopt, "adopt", died),
        "before a file is moved": (adopt, "refuse_if_changed", died),
        "after a file was moved": (LocalStore, "rename_files", moves_one),
    }
    with monkeypatch.context() as patch:
        patch.setattr(*ends[moment])
        with pytest.raises(Died):
            commit(root, JOB, options=HIVE, force=True)


@pytest.mark.parametrize("moment", ["once it is claimed", "before it is taken", "before a file is moved"])
def test_an_undoing_says_that_what_hive_left_is_there_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """It said that nothing is left of what the tasks have written, also where Hive had got all of it back."""
    told, as_json = tmp_path / "told", tmp_path / "json"
    for root in (told, as_json):
        dies_in_its_commit(root, monkeypatch, moment)
    status, out, err = run("recover", str(told), JOB, "--undo", "--force")
    assert status == 0
    left = told / STAGING / "_tmp.-ext-10000"
    assert f"all that its tasks have written is back in {left.as_uri()}: " in out + err
    _, found = run_json("recover", str(as_json), JOB, "--undo", "--force")
    assert found[JOB]["given_back"] == (as_json / STAGING / "_tmp.-ext-10000").as_uri()
    assert unlike(found, DOCUMENTS["recover"]) == []
    assert len(list(left.iterdir())) == 2
    committing = (out + err)[(out + err).index("lockgate commit") :].split(" commits it")[0]
    assert run(*shlex.split(committing)[1:])[0] == 0
    assert {"000006_0", "000007_0"} <= {each.name for each in told.iterdir()}


def test_an_undoing_says_that_what_hive_left_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, as_json = tmp_path / "told", tmp_path / "json"
    for root in (told, as_json):
        dies_in_its_commit(root, monkeypatch, "after a file was moved")
    status, out, err = run("recover", str(told), JOB, "--undo", "--force")
    assert status == 0
    assert not (told / STAGING / "_tmp.-ext-10000").exists()
    assert "what its tasks have written is deleted: if it is wanted, run the job again" in out + err
    _, found = run_json("recover", str(as_json), JOB, "--undo", "--force")
    assert (found[JOB]["given_back"], found[JOB]["next_step"]) == ("", "")


def merged_by_half(root: Path, whole: str) -> None:
    """The output of a first stage, complete, and what a merge job has made of the first half of it."""
    for number in range(4):
        file = root / STAGING / whole / f"00000{number}_0"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"row")
    leave(root, "000000_0")
    statistics = root / STAGING / "-ext-10001" / "tmpstats-0"
    statistics.parent.mkdir()
    statistics.write_bytes(b"")


@pytest.mark.parametrize("whole", ["-ext-10002", "_tmp.-ext-10002", "-ext-10000", "_tmp.-ext-10002.moved"])
def test_complete_a_part_of_a_hive_query_is_not_taken_for_the_whole_without_a_word(tmp_path: Path, whole: str) -> None:
    """A driver that dies while it merges small files leaves the whole output, and beside it what was merged so far."""
    merged_by_half(tmp_path, whole)
    job = [str(tmp_path), JOB, "--protocol", "hive"]
    status, _, err = run("plan", *job)
    assert (status, "other output beside this" in err, f"{STAGING}/{whole} " in err) == (0, True, True)
    status, planned = run_json("plan", *job)
    assert len(planned["outputs_beside"]) == 1, "what holds statistics is no output"
    assert unlike(planned, DOCUMENTS["plan"]) == []
    status, _, err = run("commit", *job, "-o", "alive_seconds=0")
    assert (status, "1 other output" in err, f"{STAGING}/{whole}" in err) == (1, True, True)
    other = planned["outputs_beside"][0].partition("(")[2].rstrip(")")
    status, found = run_json(*shlex.split(other)[1:])
    assert (status, found["files"]) == (0, 4), "the other can be planned as it is printed"
    assert run("commit", *job, "--force")[0] == 0


def test_complete_who_adds_force_for_the_fence_is_told_of_other_output_before_and_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as the directory was young, the fence was all that was said: its `add --force` led past the refusal that
    names the other output, and half of the rows were committed without a word."""
    merged_by_half(tmp_path, "-ext-10002")
    job = [str(tmp_path), JOB, "--protocol", "hive"]
    other = f"{STAGING}/-ext-10002"
    status, _, err = run("commit", *job)
    assert (status, "may be at work" in err, "add --force" in err, other in err) == (1, True, True, True)
    with monkeypatch.context() as patch:
        patch.setattr(adopt, "refuse_if_changed", died)
        with pytest.raises(Died):
            commit(tmp_path, JOB, options=HIVE, force=True)
    status, found = run_json("recover", str(tmp_path), JOB, "--finish", "--force")
    assert (status, found[JOB]["outcome"]) == (0, "finished"), "what is told outlives the driver"
    status, _, err = run("show", str(tmp_path))
    assert (status, "was left where it was" in err, other in err) == (0, True, True)


def test_complete_the_commit_says_what_other_output_it_has_left(tmp_path: Path) -> None:
    merged_by_half(tmp_path, "-ext-10002")
    status, found = run_json("commit", str(tmp_path), JOB, "--protocol", "hive", "--force")
    assert (status, unlike(found, DOCUMENTS["commit"])) == (0, [])
    (left,) = found["lockgate"]["outputs_beside"]
    assert f"{STAGING}/-ext-10002" in left
    assert run("plan", *shlex.split(left.partition("(")[2].rstrip(")"))[2:])[0] == 0


def test_what_is_told_of_a_hive_job_names_no_spark_and_its_bytes_as_such(tmp_path: Path) -> None:
    leave(tmp_path, "000006_0", "000007_0")
    job = [str(tmp_path), JOB, "--protocol", "hive"]
    _, planned, told = run("plan", *job)
    _, _, fenced = run("commit", *job)
    _, committed, more = run("commit", *job, "--force")
    assert "wrote one of its files" in fenced
    assert not any("Spark" in text or "renewed" in text for text in (planned, told, fenced, committed, more))
    assert "target\tbytes\tsource" in planned


def test_jobs_of_hives_says_how_to_name_what_a_stage_has_finished(tmp_path: Path) -> None:
    """Hive renames `_tmp.-ext-10000` to `-ext-10000` before it moves the files."""
    file = tmp_path / STAGING / "-ext-10000" / "000000_0"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"row")
    _, _, err = run("jobs", str(tmp_path))
    assert "f what Hive has left there: lockgate jobs" in err
    _, _, err = run("jobs", str(tmp_path), "--protocol", "hive")
    naming = f"lockgate jobs {tmp_path.as_uri()} -o protocol=hive -o hive_directory={STAGING}/-ext-10000"
    assert naming in err
    assert naming in run("plan", str(tmp_path), JOB, "--protocol", "hive")[2]
    _, found = run_json(*shlex.split(naming)[1:])
    assert [job["job_id"] for job in found] == [JOB]


@pytest.mark.parametrize("protocol", ["hive", "v1"])
def test_the_directory_that_is_named_of_another_programs_job_is_there(tmp_path: Path, protocol: str) -> None:
    """It was the one that a commit would make below `_lockgate`."""
    job_id, there = JOB, f"{STAGING}/_tmp.-ext-10000"
    if protocol == "hive":
        leave(tmp_path, "000006_0")
    else:
        job_id, there = "job_202411211721_0003", "_temporary/0"
        task = tmp_path / there / "task_202411211721_0003_m_000000"
        task.mkdir(parents=True)
        (task / "part-0").write_bytes(b"theirs")
    _, found = run_json("jobs", str(tmp_path), "--protocol", protocol)
    assert [(job["job_id"], job["directory"]) for job in found] == [(job_id, there)]
    _, garbage = run_json("gc", str(tmp_path), "--protocol", protocol, "-o", "alive_seconds=0")
    (kept,) = (each for each in garbage if each["action"] == "kept")
    assert kept["path"] == there
    assert f"lockgate commit {tmp_path.as_uri()} {job_id}" in kept["why"]


def test_gc_does_not_advise_to_commit_what_hadoops_second_algorithm_has_left(tmp_path: Path) -> None:
    """Its tasks' files are in the destination, and a commit is always refused."""
    job_id = "job_202411211721_0003"
    (tmp_path / "_temporary/0/_temporary/attempt_202411211721_0003_m_000001_0").mkdir(parents=True)
    (kept,) = run_json("gc", str(tmp_path), "--protocol", "v1", "-o", "alive_seconds=0")[1]
    assert (kept["path"], kept["action"], "lockgate commit" in kept["why"]) == ("_temporary/0", "kept", False)
    assert f"lockgate abort {tmp_path.as_uri()} {job_id} --protocol v1" in kept["why"]
    assert "add --force" in kept["why"]


def test_what_recover_and_gc_suggest_has_the_options_that_the_commit_needs(tmp_path: Path) -> None:
    """They named `lockgate commit --protocol hive`, which was refused, twice."""
    elsewhere = tmp_path / "hive out" / "_tmp.-ext-10000"
    leave(tmp_path, "000005_0", "000005_1")
    elsewhere.parent.mkdir()
    (tmp_path / STAGING / "_tmp.-ext-10000").rename(elsewhere)
    (tmp_path / STAGING).rmdir()
    destination = str(tmp_path / "table")
    Path(destination).mkdir()
    place = ["-o", f"hive_directory={elsewhere}", "-o", "alive_seconds=0"]
    told = ["--protocol", "hive", *place]
    (job,) = [each["job_id"] for each in run_json("jobs", destination, "-o", "protocol=hive", *place)[1]]
    _, found = run_json("recover", destination, job, *told)
    assert "duplicates=receipts -o duplicate_attempts=000005_1" in found[job]["problem"]
    (kept,) = run_json("gc", destination, "-o", "protocol=hive", *place)[1]
    assert shlex.quote(f"hive_directory={elsewhere}") in kept["why"]
    assert "lockgate plan" in kept["why"]
    assert "says which -o it needs" in kept["why"]
    # With what was told, the commands that are printed have it too.
    _, chosen = run_json("recover", destination, job, *told, "-o", "duplicates=newest")
    assert "-o duplicates=newest -o " in chosen[job]["problem"]


@pytest.mark.parametrize(
    ("options", "next_step"),
    [({"hive_buckets": 2}, "leave it out;"), ({"hive_buckets": 2, "duplicates": "newest"}, "leave them out;")],
)
def test_options_of_hives_jobs_on_a_job_of_our_own_are_counted(tmp_path: Path, options: dict, next_step: str) -> None:
    with pytest.raises(OptionError) as refused:
        Job(tmp_path, protocol="hive", **options).setup()
    assert refused.value.next_step.startswith(next_step)


def printed(text: str, name: str, end: str) -> list[str]:
    """The first command of this name in a text, as words, without `lockgate`."""
    return shlex.split(text[text.index(f"lockgate {name} ") :].split(end)[0])[1:]


@pytest.mark.parametrize("below", [STAGING, "elsewhere", None])
def test_what_an_undoing_prints_commits_by_the_options_of_the_first_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str | None
) -> None:
    """It named the protocol alone: typed as printed it appended to the partitions that were to be replaced, and took
    another attempt, or was refused."""
    table = tmp_path / "table"
    leave(table, "ds=1/000005_0", "ds=1/000005_1")
    (table / "ds=1").mkdir()
    (table / "ds=1/old").write_bytes(b"old")
    options, job = HIVE.replace(conflict="replace-partitions", hive_buckets=8), JOB
    options = options.replace(duplicates="receipts", duplicate_attempts=("000005_1",))
    if below != STAGING:
        above = (tmp_path if below is None else table) / "elsewhere"
        (table / STAGING).rename(above)
        options, job = options.replace(hive_directory=(above / "_tmp.-ext-10000").as_uri()), "elsewhere.-ext-10000"
    with monkeypatch.context() as patch:
        patch.setattr(adopt, "adopt", died)
        with pytest.raises(Died):
            commit(table, job, options=options, force=True)
    place = [] if below == STAGING else ["-o", f"hive_directory={options.hive_directory}"]
    status, found = run_json("recover", str(table), job, "--undo", "--force", *place)
    assert status == 0
    again = printed(found[job]["next_step"], "commit", " commits it")
    assert run(*again)[0] == 0
    names = sorted(each.name for each in (table / "ds=1").iterdir())
    assert ([name[:6] for name in names], names[5]) == ([f"00000{n}" for n in range(8)], "000005_1")


def test_who_kept_no_options_of_an_earlier_commit_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that died before its claim: `recover` and `gc` printed a command as if it were the whole of it."""
    leave(tmp_path, "ds=1/000005_0")
    with monkeypatch.context() as patch:
        patch.setattr(RecordLog, "claim", died)
        with pytest.raises(Died):
            commit(tmp_path, JOB, options=HIVE.replace(conflict="replace-partitions"), force=True)
    told = [str(tmp_path), "--protocol", "hive", "-o", "alive_seconds=0"]
    assert [each["action"] for each in run_json("gc", *told)[1]] == ["deleted"], "what the commit had saved of its own"
    for more in ([], ["-o", "conflict=replace-partitions"]):
        _, recovered = run_json("recover", *told, JOB, *more)
        (kept,) = run_json("gc", *told, *more)[1]
        for said in (recovered[JOB]["problem"], kept["why"]):
            assert f"by the policy {'replace-partitions' if more else 'append'}: " in said
            assert "are not known here, and have to be given again" in said
            assert ("-o conflict=replace-partitions" in printed_line(said)) is bool(more)


def printed_line(text: str) -> str:
    return " ".join(printed(text, "commit", " ("))


def test_after_a_refusal_the_command_has_the_options_of_the_commit_that_was_refused(tmp_path: Path) -> None:
    leave(tmp_path, "ds=1/000005_0", "ds=1/000005_1")
    (tmp_path / "ds=1").mkdir()
    (tmp_path / "ds=1/old").write_bytes(b"old")
    told = [str(tmp_path), JOB, "--protocol", "hive"]
    refused = ["-o", "conflict=fail-partitions", "-o", "duplicates=newest"]
    assert run("commit", *told, "--force", *refused)[0] == 1
    (tmp_path / "ds=1/old").unlink()
    _, found = run_json("recover", *told, "-o", "alive_seconds=0")
    again = printed(found[JOB]["problem"], "commit", " (")
    assert set(refused) < set(again)
    assert run(*again, "--force")[0] == 0
    assert [each.name for each in (tmp_path / "ds=1").iterdir()] == ["000005_1"]


def test_every_task_that_is_refused_is_named_at_once_and_one_command_decides_all(tmp_path: Path) -> None:
    """`plan` and `commit` named the first alone: 300 tasks took 300 runs, and what was named was not printed."""
    leave(tmp_path, *(f"{number:06d}_{attempt}" for number in range(30) for attempt in (0, 1)))
    told = [str(tmp_path), JOB, "--protocol", "hive"]
    named = ["-o", "duplicates=receipts", "-o", "duplicate_attempts=000003_0"]
    for command in (["plan"], ["commit", "--force"]):
        _, found = run_json(*command, *told)
        status, _, err = run(*command, *told)
        assert status == 1
        for text in (err, f"{found['what']}\n{found['where']}\n{found['next_step']}"):
            assert "of 30 tasks no attempt can be chosen" in text
            assert all(f"task_{number:06d} has the output of 2 attempts" in text for number in range(20))
            assert "and of 10 more tasks" in text
    status, found = run_json("plan", *told, *named)
    assert (status, "of 29 tasks no" in found["what"]) == (1, True)
    again = found["next_step"].partition("if it is the last, ")[2].partition(" (")[0].split()
    assert again[3].split("=")[1].split(",") == [f"{number:06d}_{int(number != 3)}" for number in range(30)]
    assert run("commit", *told, "--force", *again)[0] == 0
    assert sum(each.name.endswith("_1") for each in tmp_path.iterdir()) == 29


def test_a_task_whose_attempts_were_cut_short_hides_no_other_that_is_refused(tmp_path: Path) -> None:
    leave(tmp_path, "000001_0", "_tmp.000001_0", "000002_0", "000002_1", "000003_0", "000003_1")
    _, found = run_json("plan", str(tmp_path), JOB, "--protocol", "hive")
    assert "of 3 tasks" in found["what"]
    assert "attempt 0 at task_000001 was cut short" in found["where"]
    assert "run the Hive job again" in found["next_step"]
    assert "duplicate_attempts=000002_1,000003_1 " in found["next_step"]
