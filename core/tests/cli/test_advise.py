"""`lockgate advise`: what is safe at a destination, what it would cost, and what to take."""

from __future__ import annotations

import lockgate
import pytest
from command_line import run, run_json
from lockgate.engine.inspection.advise import Advice, Choice, JobSize, Pace, advise
from lockgate.errors import UsageError
from lockgate.model.options import JobOptions
from lockgate.model.prediction import Costs, Work, operations_of_job, predict_seconds
from lockgate.plugin import Attributes, Capability, Protocol
from lockgate.plugins.registry import registry_for


def by_name(document: dict) -> dict[str, dict]:
    return {each["protocol"]: each for each in document["protocols"]}


def test_it_advises_a_protocol_that_is_safe_and_says_why(tmp_path) -> None:
    status, found = run_json("advise", str(tmp_path / "new"), "--files", "20000", "--latency", "20")
    assert status == 0
    taken = by_name(found)[found["take"]]
    assert taken["verdict"] == "safe"
    assert taken["lacks"] == []
    assert found["reason"].startswith(f"Take {found['take']}")
    assert found["reason"].count(". ") == 0
    assert taken["job_operations"]["rename files"] == 20_000
    assert list(tmp_path.iterdir()) == []


def test_every_protocol_that_is_offered_is_listed_with_what_it_promises(tmp_path) -> None:
    _, found = run_json("advise", str(tmp_path))
    offered = registry_for((), ()).protocols()
    assert by_name(found).keys() == offered.keys()
    for name, listed in by_name(found).items():
        promised = vars(offered[name].attributes)
        assert set(listed["promises"]) == {each for each, value in promised.items() if value}
        assert set(listed["lacks"]) == {each for each, value in promised.items() if not value}


def test_a_policy_that_is_given_twice_and_differs_is_refused(tmp_path) -> None:
    status, _, err = run("advise", str(tmp_path), "--conflict", "append", "-o", "conflict=replace")
    assert status == 2
    assert "conflict is given twice, as 'replace' and 'append'" in err


def test_a_long_job_commit_is_told_in_minutes_and_hours(tmp_path) -> None:
    for files, told in (("20000", " min "), ("2000000", " h ")):
        _, found = run_json("advise", str(tmp_path), "--files", files, "--latency", "20", "--rate", "50")
        assert told in found["reason"]


def test_an_unsafe_protocol_is_listed_with_what_it_may_lose_and_never_taken(tmp_path) -> None:
    told = ("-o", "accept_unsafe=true", "-o", "validate_output=true")
    _, found = run_json("advise", str(tmp_path), "--latency", "1", *told)
    unsafe = [each for each in found["protocols"] if each["verdict"] == "unsafe"]
    assert unsafe
    for each in unsafe:
        assert each["why"] == registry_for((), ()).protocol(each["protocol"]).unsafe
        assert each["protocol"] != found["take"]
    # Whatever it would cost: its job commit is about as quick where all files are looked at once more.
    assert min(each["job_seconds"] for each in unsafe) <= 1.05 * by_name(found)[found["take"]]["job_seconds"]


def test_a_protocol_that_the_store_cannot_carry_is_refused_by_what_it_lacks(tmp_path) -> None:
    _, found = run_json("advise", str(tmp_path))
    deferred = by_name(found)["deferred"]
    assert deferred["verdict"] == "refused"
    # A program that takes what costs least must not take this.
    assert (deferred["job_seconds"], deferred["task_seconds"], deferred["bytes_copied"]) == (None, None, None)
    assert "deferred-upload" in deferred["why"]
    assert deferred["job_operations"] == {}


PLANNED = ("manifest", "v1", "v2", "hive", "direct", "stocator", "markers")
"""Those that a local disk can carry."""


@pytest.mark.parametrize("protocol", PLANNED)
def test_what_it_predicts_is_what_plan_predicts(table, protocol: str) -> None:
    """The renames by which v1 takes the directories of tasks into the job's own were not in the plan, nor the deletion
    of markers, nor the listing by which stocator finds what it does not count."""
    job = table.job(protocol=protocol, accept_unsafe=True)
    for task in range(4):
        attempt = job.task_attempt(task)
        attempt.setup()
        tag = f"-{attempt.tag}" if job.needs_tags else ""
        for number in range(3):
            with attempt.open(f"p={number}/{task}{tag}") as file:
                file.write(b"1")
        attempt.commit()
    planned = run_json("plan", str(table.root), job.job_id)[1]["operations"]
    advice = lockgate.advise(table.root, files=12, tasks=4, directories=3)
    (choice,) = [each for each in advice.choices if each.protocol == protocol]
    told = {row.kind: row.count for row in choice.job_operations}
    assert told == planned


def test_what_takes_one_call_after_another_is_not_predicted_as_if_many_were_made_at_once(tmp_path) -> None:
    _, found = run_json("advise", str(tmp_path), "--files", "1000", "--latency", "1")
    assert found["in_flight"] == 1
    taken = by_name(found)[found["take"]]
    assert taken["job_seconds"] >= sum(taken["job_operations"].values()) * 0.001
    assert "one after another" in "".join(run("advise", str(tmp_path))[1:])


def test_of_a_refused_protocol_people_are_told_why_and_no_more(tmp_path) -> None:
    status, out, _ = run("advise", str(tmp_path), "--conflict", "replace")
    assert status == 0
    (row,) = [line for line in out.splitlines() if line.startswith("direct\t")]
    assert "it cannot keep replace" in row
    assert "does not promise" not in row
    assert "speculation" not in row


def test_a_store_whose_claims_do_not_hold_carries_nothing_that_needs_them(tmp_path, monkeypatch) -> None:
    from lockgate.stores.local import LocalStore

    async def replaces(self, path, content):
        return await self.write_file(path, content)

    monkeypatch.setattr(LocalStore, "create_file", replaces)
    status, out, _ = run("advise", str(tmp_path))
    assert status == 1
    assert "claimed, and does not hold" in out
    advice = lockgate.advise(tmp_path)
    assert (advice.take, advice.broken) == ("", ("create-if-absent",))
    assert "does not hold here: create-if-absent" in advice.reason


def test_a_protocol_of_a_plugin_is_advised_by_what_it_says_of_itself(tmp_path) -> None:
    class Careless(type(registry_for((), ()).protocol("manifest"))):
        name = "careless"
        needs = frozenset({Capability.CREATE_IF_ABSENT})
        attributes = Attributes(*[False] * 6)
        unsafe = "all of a job"

    class Plugin:
        @staticmethod
        @lockgate.plugin.hookimpl
        def lockgate_protocols() -> list[Protocol]:
            return [Careless()]

    registry = registry_for((), ())
    registry.register(Plugin, "careless")
    try:
        advice = lockgate.advise(tmp_path)
    finally:
        registry.unregister(Plugin)
    assert advice.take != "careless"
    (careless,) = [each for each in advice.choices if each.protocol == "careless"]
    assert len(careless.lacks) == 6
    assert careless.verdict == "unsafe"
    assert "rename files" not in {row.kind for row in (*careless.task_operations, *careless.job_operations)}


IN_PLACE = ("direct", "markers", "stocator", "v2")


def test_what_each_protocol_refuses_is_what_a_job_by_it_is_refused_with(tmp_path) -> None:
    """By an experiment: a job of each protocol is set up with each policy."""
    _, found = run_json("advise", str(tmp_path), "--latency", "1")
    policies = registry_for((), ()).policies()
    for name, listed in by_name(found).items():
        if listed["verdict"] in ("refused", "others' jobs"):
            continue
        refused = []
        for policy in [*policies, "delete_target_files"]:
            more = {"delete_target_files": True} if policy == "delete_target_files" else {"conflict": policy}
            more |= {"replace_below": ("a",)} if policy == "replace-below" else {}
            job = lockgate.Job(tmp_path / name / policy, protocol=name, accept_unsafe=True, **more)
            try:
                job.setup()
            except lockgate.errors.OptionError as error:
                assert "cannot be kept by the protocol" in error.what
                refused.append(policy)
            else:
                job.abort()
        assert listed["refuses"] == refused, name
        assert listed["spark_overwrite"] == (name not in IN_PLACE)


def test_a_policy_that_a_protocol_refuses_makes_it_refused(tmp_path) -> None:
    for policy in ("replace", "replace-partitions", "fail-partitions"):
        status, found = run_json("advise", str(tmp_path), "--conflict", policy)
        assert (status, found["conflict"]) == (0, policy)
        for name in IN_PLACE:
            listed = by_name(found)[name]
            assert listed["verdict"] == "refused"
            assert f"it cannot keep {policy}: " in listed["why"]
            assert listed["job_operations"] == {}
        assert by_name(found)["manifest"]["verdict"] == "safe"
    _, found = run_json("advise", str(tmp_path), "--conflict", "fail")
    assert {by_name(found)[name]["verdict"] for name in IN_PLACE} == {"unsafe"}
    assert lockgate.advise(tmp_path, conflict="replace").conflict == "replace"
    given = run_json("advise", str(tmp_path), "-o", "conflict=replace")[1]
    assert {each["protocol"]: each["verdict"] for each in given["protocols"]} == {
        each.protocol: each.verdict for each in lockgate.advise(tmp_path, conflict="replace").choices
    }


def test_files_of_one_name_are_replaced_by_targets_only_where_the_protocol_can(tmp_path) -> None:
    options = JobOptions(delete_target_files=True)
    choices = {each.protocol: each for each in lockgate.advise(tmp_path, options=options).choices}
    assert {choices[name].verdict for name in IN_PLACE} == {"refused"}
    assert "delete_target_files" in choices["v2"].why


def test_what_is_replaced_is_part_of_the_cost(tmp_path) -> None:
    _, without = run_json("advise", str(tmp_path), "--conflict", "replace", "--latency", "20")
    _, found = run_json("advise", str(tmp_path), "--conflict", "replace", "--replaced", "5000", "--latency", "20")
    manifest = by_name(found)["manifest"]
    assert manifest["job_operations"]["set files aside"] == 5000
    assert manifest["job_seconds"] > by_name(without)["manifest"]["job_seconds"]
    assert found["replaced"] == 5000


def test_the_table_says_what_is_refused(tmp_path) -> None:
    _, out, _ = run("advise", str(tmp_path))
    assert "refuses fail-partitions, replace, replace-below, replace-partitions, delete_target_files" in out
    _, _, err = run("advise", str(tmp_path), "--conflict", "replace", "--replaced", "7")
    assert "The conflict policy: replace, which replaces 7 files." in err


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--conflict", "overwrite"], "replace"),
        (["--conflict", "apend"], "did you mean append"),
        (["--replaced", "3"], "the conflict policy append replaces nothing"),
        (["--conflict", "fail-partitions", "--replaced", "3"], "replaces nothing"),
    ],
)
def test_a_policy_that_cannot_be_is_a_mistake_of_the_command(tmp_path, given: list[str], told: str) -> None:
    status, _, err = run("advise", str(tmp_path), *given)
    assert status == 2
    assert told in err


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--files", "0"], "files"),
        (["--files", "many"], "files"),
        (["--tasks", "-1"], "tasks"),
        (["--bytes", "-1"], "bytes"),
        (["--bytes", "1Q"], "such as --bytes 10g"),
        (["--bytes", "١٢"], "such as --bytes 10g"),
        (["--latency", "-3"], "latency"),
        (["--rate", "soon"], "rate"),
        (["--latency", "nan"], "latency"),
        (["--latency", "1e308"], "latency is a number from 0 to"),
        (["--rate", "1e-308"], "rate is a number from 0.001 to"),
        (["--files", "1" + "0" * 400], "files is a whole number from 1 to"),
    ],
)
def test_a_number_that_is_none_is_refused(tmp_path, given, told) -> None:
    status, out, err = run("advise", str(tmp_path), *given)
    assert (status, out) == (2, "")
    assert told in err


@pytest.mark.parametrize(
    "given", [["--latency", "86400000"], ["--rate", "0.001"], ["--bytes", "1" + "0" * 15, "--tasks", "1" + "0" * 15]]
)
def test_the_largest_numbers_give_a_document_that_any_program_reads(tmp_path, given) -> None:
    _, told = run_json("advise", str(tmp_path), "--files", "1" + "0" * 15, *given)
    assert told["protocols"][0]["job_seconds"] > 0


@pytest.mark.parametrize("given", [["--latency", "nan"], ["--latency", "1e308"], ["--rate", "nan"]])
def test_plan_refuses_a_number_that_is_none(table, given) -> None:
    assert run("plan", str(table.root), "j", *given)[0] == 2


def test_no_directories_are_files_in_the_destination_itself(tmp_path) -> None:
    counted = {}
    for number in (0, 1):
        _, found = run_json("advise", str(tmp_path), "--latency", "20", "--directories", str(number))
        (manifest,) = (each for each in found["protocols"] if each["protocol"] == "manifest")
        counted[number] = sum(manifest["job_operations"].values())
    assert counted[0] < counted[1], "none is looked for, or made"


def test_bytes_may_be_given_as_a_size(tmp_path) -> None:
    assert run_json("advise", str(tmp_path), "--bytes", "10g")[1]["bytes"] == 10 << 30


@pytest.mark.parametrize(
    "given",
    [{"files": 0}, {"files": "10"}, {"files": True}, {"bytes": -1}, {"latency": "fast"}, {"rate": float("inf")}],
)
def test_a_number_that_is_none_is_refused_in_python(tmp_path, given) -> None:
    (name,) = given
    with pytest.raises(UsageError, match=f"^{name} is a"):
        lockgate.advise(tmp_path, **given)
    assert list(tmp_path.iterdir()) == []


def test_a_scheme_that_nobody_serves_is_told_as_everywhere() -> None:
    status, _, err = run("advise", "nowhere://bucket/events")
    assert status == 2
    assert "no plugin serves nowhere:// URLs" in err


def test_what_a_bulk_rename_saves_is_requests_and_not_the_rate_that_a_store_allows() -> None:
    """Cloud Storage counts a batch as the calls in it: a million renames at 1,000 a second were said to take a second.
    And what is renamed is not deleted again: its cleanup was said to take a deletion a file, one by one."""
    cloud = frozenset({Capability.BULK_RENAME, Capability.BULK_DELETE})
    work = Work(how="renames", tasks=200, files=1_000_000)
    rows = operations_of_job(work, Costs(), JobOptions(), cloud)
    counted = {row.kind: row.count for row in rows}
    assert counted["rename files"] == 10_000
    assert counted["clean up"] < 20
    assert predict_seconds(rows, latency=0.001, rate=1_000, in_flight=64) > 1_000
    assert predict_seconds(rows, latency=0.02, rate=0, in_flight=64) < 10
    plainly = {row.kind: row.count for row in operations_of_job(work, Costs(), JobOptions(), frozenset())}
    assert plainly["rename files"] == 1_000_000
    assert 600 <= plainly["clean up"] < 620


def test_what_markers_ask_of_a_store_for_each_file_is_what_advise_says(table, monkeypatch) -> None:
    """It said two looks a file, of which one is made, and nothing of the markers that are made and deleted."""
    from lockgate.stores.local import LocalStore

    asked = {"looks": 0, "markers": 0, "deleted": 0}
    stat, write, delete = LocalStore.stat_files, LocalStore.write_file, LocalStore.delete_directories

    async def stat_files(self, paths):
        asked["looks"] += sum(path.startswith("p=") for path in paths)
        return await stat(self, paths)

    async def write_file(self, path, content):
        asked["markers"] += ".marker." in path
        return await write(self, path, content)

    async def delete_directories(self, paths, *progress):
        for path in paths:
            asked["deleted"] += sum(each.is_file() for each in (table.root / path).rglob("*.marker.*"))
        return await delete(self, paths, *progress)

    monkeypatch.setattr(LocalStore, "stat_files", stat_files)
    monkeypatch.setattr(LocalStore, "write_file", write_file)
    monkeypatch.setattr(LocalStore, "delete_directories", delete_directories)
    job = table.job(protocol="markers", accept_unsafe=True)
    attempt = job.task_attempt(0)
    attempt.setup()
    for number in range(12):
        with attempt.open(f"p=1/{number}-{attempt.tag}") as file:
            file.write(b"1")
    receipt = attempt.commit()
    asked["looks"] = 0
    job.commit([receipt])
    advice = lockgate.advise(table.root, files=12, tasks=1)
    (choice,) = [each for each in advice.choices if each.protocol == "markers"]
    told = {row.kind: row.count for row in (*choice.write_operations, *choice.job_operations)}
    assert told["look at files in place"] == asked["looks"] == 12
    # A small file is written beside its name, renamed, and looked at.
    assert told["make markers"] == 3 * asked["markers"] == 36
    assert told["delete markers"] == asked["deleted"] == 12


def test_a_timeline_server_is_in_the_figures(tmp_path) -> None:
    """Of many tasks a batch has a marker of each; direct markers are a small file a file, and no other protocol's."""
    given = {"files": 1000, "tasks": 100, "latency": 1.0}
    direct = {each.protocol: each for each in lockgate.advise(tmp_path, **given).choices}
    served = JobOptions(markers_type="timeline_server_based", markers_batch_threads=5)
    batched = {each.protocol: each for each in lockgate.advise(tmp_path, **given, options=served).choices}

    def announcing(choice: Choice) -> dict[str, int]:
        return {row.kind: row.count for row in choice.write_operations if "markers" in row.kind}

    assert announcing(direct["markers"]) == {"make markers": 3000}
    assert announcing(batched["markers"]) == {"write markers in batches": 20}
    assert batched["markers"].operations < direct["markers"].operations
    assert all(batched[name] == direct[name] for name in direct if name != "markers")
    assert not any(announcing(direct[name]) for name in direct if name != "markers")


@pytest.mark.parametrize("name", ["_temporary", "_lockgate/x", "__magic_job-1/y"])
def test_nothing_is_advised_where_no_table_may_be(tmp_path, name: str) -> None:
    status, _, err = run("advise", str(tmp_path / name))
    assert status == 2
    assert "a name that committers keep for themselves" in err


def test_the_protocol_that_auto_stands_for_is_taken_unless_another_is_much_quicker() -> None:
    """Of small jobs on Azure it said `deferred`, which asks for names of its own, for two requests in a row less."""
    able = frozenset(Capability) - {Capability.REPLACE_BY_VERSION}
    protocols = [each for each in registry_for((), ()).protocols().values() if each.name in ("manifest", "deferred")]

    def advised(files: int, in_flight: int) -> Advice:
        return advise(
            "abfs://x/y",
            protocols,
            {each.name: each.needs for each in protocols},
            able,
            (),
            usual="manifest",
            size=JobSize(files, tasks=1),
            pace=Pace(0.02, 0.0, in_flight),
            measured=False,
            options=JobOptions(),
            policies=(),
            no_versions="",
        )

    found = advised(10, 64)
    seconds = {each.protocol: each.job_seconds for each in found.choices}
    assert seconds["deferred"] < seconds["manifest"] < 2 * seconds["deferred"]
    assert found.take == "manifest"
    assert "as protocol=auto does here" in found.reason


def test_nothing_is_advised_where_every_job_is_refused(tmp_path) -> None:
    log = tmp_path / "_delta_log/00000000000000000000.json"
    log.parent.mkdir()
    log.write_text("{}")
    status, _, err = run("advise", str(tmp_path))
    assert status == 1
    assert "the destination is a Delta table" in err
