"""What happens in one history before chance has its say: the destination, the jobs, their tasks, who else is there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from lockgate.model.layout import JobLayout
from lockgate.model.options import JobOptions

from simworld.faults import Kind
from simworld.store import PROFILES, profile_of

POLICIES = ("append", "fail", "replace", "replace-partitions")

NAMES = ("part-0.parquet", "a b.csv", "50%20.csv", "ü+x", "part-0.parquet")
"""File names, plain and not: spaces, percent signs, what looks encoded, a plus, letters beyond ASCII."""

PARTITIONS = ("p=1", "p=2", "p=a b/q=%", "")


@dataclass(frozen=True)
class AttemptPlan:
    """One task attempt: what it writes, when it starts, and how its end is told."""

    task: int
    attempt: int
    targets: tuple[str, ...]
    start: float = 0.0
    report_lost: bool = False
    """Its first report never arrives: it commits again, and reports again."""
    scans: bool = False
    """Somebody else wrote its files: task commit lists the directory."""
    fails: bool = False
    """It gives up before its commit, and aborts."""
    given_up: bool = False
    """It commits, but its driver has given it up, and it is told to abort."""
    lingers: int = 0
    """How many files more it writes, one by one, before it commits, whatever has become of its job meanwhile."""
    pause: float = 0.0
    """Virtual seconds between two of those; 0: whenever its turn comes."""
    waits: float = 0.0
    """Virtual seconds that it sleeps before its commit, when all is written."""
    is_again: bool = False
    """It is a second run of an attempt of this number, begun since the first was thought dead."""


@dataclass(frozen=True)
class JobPlan:
    """One driver and its job. `run` names it in histories; two may have the same `job_id`."""

    run: str
    job_id: str
    options: JobOptions
    attempts: tuple[AttemptPlan, ...]
    start: float = 0.0
    with_receipts: bool = True
    twin: float | None = None
    """A second driver of the same job, from the same pickle, commits this long after the first began to."""
    aborts: bool = False
    """The driver gives the job up instead of committing it."""
    aborts_early: bool = False
    """And does not wait for its tasks, as one that is cancelled."""
    same_bytes: bool = False
    """What its attempts write depends on the target alone."""
    shows_identities: bool = True
    """Its manifests state the identities of files; Hadoop's do so only on ABFS."""
    job_attempt: int = 0
    attempt_of: str = ""
    """The run whose job this is a further attempt at."""
    again_of: str = ""
    """The run that this one repeats, from the same pickle, once somebody has undone it: its driver may be asleep."""
    restarts: bool = False
    """And it does not wait for anybody to undo that: only until its driver is dead and its tasks are over, as a
    workflow that starts its program again."""
    is_new: bool = False
    """By a `Job` of its own that has the same id, and not from the same pickle: its marker has another nonce."""
    takes_over: bool = False
    """It commits the tasks that earlier attempts at the job have left committed, and runs only the others."""
    calls_it: int = 0
    """By which of the destination's names its driver and its tasks know it."""
    commits_twice: bool = False
    commits_again_after: float = 0.0
    """Virtual seconds between the two."""
    gives_up: bool = False
    """After a failed commit the driver aborts, as Spark does."""

    @property
    def layout(self) -> JobLayout:
        """The paths of this attempt at its job."""
        return JobLayout(self.job_id, self.job_attempt)


@dataclass(frozen=True)
class Visitor:
    """Somebody who comes by later: to `recover`, `finish`, `undo` or `abort` the job of that number, or for `gc`."""

    errand: str
    job: int
    at: float
    force: bool = True
    calls_it: int = 0


@dataclass(frozen=True)
class Stranger:
    """Another committer, as plain Spark's: it writes its files by way of `_temporary/0`, deletes `_temporary` whole,
    and leaves an empty `_SUCCESS`; or it aborts, and only deletes. `tidies`: it, or a person who tidies up, deletes the
    directories of our jobs as well, whoever is at work there; `only`: of these the commit records, or the markers."""

    at: float
    targets: tuple[str, ...]
    aborts: bool = False
    tidies: bool = False
    only: Literal["", "records", "markers"] = ""
    turns: int = 0
    """How many turns of others it waits for, once its time has come."""
    at_work: int = 0
    """How many turns of others its tasks take before the first of them writes, or altogether, if none does."""


@dataclass(frozen=True)
class Person:
    """Somebody who changes one file that readers see, by another program, once something has happened: `moment` is a
    phase of a job, `appears` (a job's file, of which it is the `nth`), or `time`. `does` is one of `ACTS`."""

    moment: str
    does: str
    nth: int = 1
    at: float = 0.0
    turns: int = 0
    """How many turns of others it waits for after the moment."""
    of_jobs: bool = True
    """Whether it takes a file of a job, where there is one, or one that was there before."""
    choice: float = 0.0
    """Which of several."""


ACTS = ("edit", "edit", "rewrite", "replace", "write alike", "delete")
"""What people do to a file: edit it in place, so that its metadata stay, to another length or to the same one; put
another in its place, or one of the same bytes; delete it. And, where directories are set aside whole, `add` one, or
`make inside` one of them, or `hide inside`: a name that is no text, where nothing can be listed then."""

MOMENTS = ("time", "claimed", "moving", "publishing", "appears", "appears", "rolling-back", "committed")


@dataclass(frozen=True)
class Scenario:
    """Everything a history needs besides chance in scheduling and faults."""

    store: str
    before: Mapping[str, bytes]
    marked_before: bool
    jobs: tuple[JobPlan, ...]
    visitors: tuple[Visitor, ...] = ()
    fault_rate: float = 0.0
    fault_kinds: tuple[Kind, ...] = ()
    faults_max: int = 0
    sleep_seconds_max: float = 100.0
    split_batches: bool = False
    split_listings: bool = False
    stickiness: float = 0.0
    hurry: float = 0.0
    skew_seconds: float = 0.0
    sees_processes: bool = False
    settle_before_sleepers_wake: bool = False
    settle_undoes: bool = False
    operators_call_it: int = 0
    strangers: tuple[Stranger, ...] = ()
    people: tuple[Person, ...] = ()
    coarse_identities: bool = False
    """On HDFS, files of one length and of one second are not told apart."""
    seconds_per_rename: float = 0.0
    """How long the store takes for each file that a driver or a recoverer renames, in virtual seconds."""
    renames_away: bool = False
    """A local disk renames a tree away before it deletes it, file by file; where that cannot be, it goes in place."""
    forgets: bool = False
    """In the end, before the last operator comes, the transaction id is forgotten."""
    movers: int = 0
    """A driver of the manifest protocol has so many movers, and the files are renamed by them."""
    movers_given_up_after: float = 0.0
    """After so many seconds the driver renames the files itself, while its movers may be at work; 0: never."""
    judges_finishing: bool = False
    """What recovery could finish, it must finish, and what anybody is told must be so."""
    readers: int = 0
    """So many actors ask again and again which files count (`lockgate.files`)."""
    places: tuple[Place, ...] = ()
    """Locations elsewhere, where jobs have parts."""


@dataclass(frozen=True)
class Place:
    """A location beside the destination: its store, what is there before, its own jobs, which are rivals of the parts
    that jobs of the destination have there, and who comes by: `visitors` count those jobs with parts after its own."""

    name: str
    scenario: Scenario
    policies: Mapping[str, str]
    """The policy of each part, by the run of its job."""
    targets: Mapping[tuple[str, int, int], tuple[str, ...]]
    """What task attempts write there, by run, task and attempt."""
    declared: frozenset[str] = frozenset()
    """The runs whose drivers declare it, since they replace what is there whether or not a task writes there."""
    calls_it: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """By which of its names a task knows it."""
    is_told_apart: bool = True
    """Whether its store can tell that its names are of one place."""


_OPTIONS: dict[tuple[tuple[str, object], ...], JobOptions] = {}
_GIVEN: dict[int, dict[str, object]] = {}
"""By the identity of options, which live as long as the process: what they were made of."""


def options(**given: object) -> JobOptions:
    """Options, made once for each combination: checking them takes longer than a history can afford."""
    key = tuple(sorted(given.items()))
    found = _OPTIONS.get(key)
    if found is None:
        # Most stores here have renames, for which `auto` stands for this protocol.
        found = _OPTIONS[key] = JobOptions(**{"protocol": "manifest", **given})  # type: ignore[arg-type]
        _GIVEN[id(found)] = given
    return found


_CHANGED: dict[tuple[int, str, object], JobOptions] = {}


def changed(given: JobOptions, **one: object) -> JobOptions:
    """Options that `options` has made, with one of them changed; each made once."""
    ((name, value),) = one.items()
    key = (id(given), name, value)
    found = _CHANGED.get(key)
    if found is None:
        found = _CHANGED[key] = options(**{**_GIVEN[id(given)], name: value})
    return found


def options_on(store: str, given: JobOptions) -> JobOptions:
    """Options that `options` has made, with the protocol that `auto` stands for on a kind of store."""
    protocol = profile_of(store).protocol
    return given if protocol == given.protocol else changed(given, protocol=protocol)


def draw_scenario(random: Random) -> Scenario:
    """A scenario from a seed. Every kind of thing is left out of most histories, so that rare mixtures come up."""
    chance = random.random
    store = random.choice(tuple(PROFILES))
    before = {}
    if chance() < 0.8:
        for partition in ("p=1", "p=2", "p=9"):
            for number in range(random.randint(0, 2)):
                before[f"{partition}/{('part-0.parquet', 'old b')[number]}"] = f"before|{partition}|{number}".encode()
        if chance() < 0.3:
            before["top"] = b"before|top"
    count = 1 if chance() < 0.5 else (2 if chance() < 0.9 else 3)
    if count == 1 and chance() < 0.15:
        # A file where the job may need a directory. (Not among several jobs: one may make the directory that must be
        # a file again when the other is undone, which no announced ground tells.)
        before["p=a b"] = b"before|blocking"
    same_transaction = chance() < 0.15
    same_id = count == 2 and chance() < 0.08
    policy = random.choice(POLICIES)
    jobs = []
    for number in range(count):
        if chance() < 0.5:
            policy = random.choice(POLICIES)
        jobs.append(draw_job(random, number, policy, same_transaction=same_transaction, same_id=same_id))
    kinds = [kind for kind in Kind if chance() < 0.45]
    if same_id:
        # An id used again after its first job is over is a mistake that nobody can notice; here both are alive.
        kinds = [kind for kind in kinds if "sleep" not in kind.value and kind is not Kind.LATE]
    visitors = tuple(
        Visitor(
            random.choice(("recover", "finish", "undo", "abort", "gc")),
            random.randrange(count),
            random.choice((0.0, 1.0, 30.0, 200.0, 4_000.0)) * chance(),
            force=chance() < 0.8,
        )
        for _ in range(random.choice((0, 0, 1, 1, 2)))
    )
    return Scenario(
        store=store,
        before=before,
        marked_before=bool(before) and chance() < 0.6,
        jobs=tuple(jobs),
        visitors=() if same_id else visitors,
        fault_rate=random.choice((0.0, 0.01, 0.03, 0.1)) if kinds else 0.0,
        fault_kinds=tuple(kinds),
        faults_max=random.choice((1, 2, 4, 8)),
        sleep_seconds_max=random.choice((1.0, 100.0, 5_000.0)),
        split_batches=chance() < 0.5,
        split_listings=chance() < 0.3,
        stickiness=random.choice((0.0, 0.5, 0.9)),
        hurry=random.choice((0.0, 0.02, 0.2)),
        skew_seconds=random.choice((0.0, 0.0, 5.0, 5_000.0)),
        sees_processes=chance() < 0.5,
        settle_before_sleepers_wake=chance() < 0.5,
        settle_undoes=chance() < 0.5,
    )


def draw_job(random: Random, number: int, policy: str, *, same_transaction: bool, same_id: bool) -> JobPlan:
    """One job, its tasks and its driver's ways."""
    chance = random.random
    tasks = random.choice((1, 1, 2, 3))
    # Most jobs of one history meet in the same few partitions and under the same names, some do not.
    own = chance() < 0.5
    attempts = []
    for task in range(tasks):
        targets = tuple(
            {
                f"{partition}/{name}" if partition else name: None
                for partition, name in (
                    (random.choice(PARTITIONS), _name(random, number, task, own=own))
                    for _ in range(random.choice((0, 1, 1, 2, 3)))
                )
            }
        )
        attempts += [
            AttemptPlan(
                task,
                attempt,
                # An attempt is the same work, but not always under the same names.
                targets if chance() < 0.5 else tuple(f"{target}.{attempt}" for target in targets),
                start=0.0 if attempt == 0 or chance() < 0.5 else 20 * chance(),
                report_lost=chance() < 0.15,
                scans=chance() < 0.1,
                fails=attempt == 0 and chance() < 0.05,
                given_up=attempt == 0 and chance() < 0.05,
            )
            # An id that two jobs share: no attempt of the first may be alive when the second begins.
            for attempt in range(1 if same_id or chance() < 0.6 else 2)
        ]
    return JobPlan(
        run=f"job{number}",
        # One id is the beginning of the other.
        job_id="job1" if same_id or number == 0 else "job1" + "0" * number,
        options=options(
            conflict=policy,
            replace_order="new-first" if chance() < 0.3 else "old-first",
            on_failure="leave" if chance() < 0.3 else "rollback",
            txn_id="txn 1/ü/7" if same_transaction else "",
            when_jobs_meet="wait" if chance() < 0.4 else "fail",
            wait_seconds_max=random.choice((0.0, 5.0, 300.0)),
            mark_success=chance() < 0.9,
            delete_target_files=chance() < 0.2,
            validate_output=chance() < 0.3,
            file_list_inline_max=0 if chance() < 0.2 else 1000,
            requests_in_flight=2,
            cleanup_ignore_failures=chance() < 0.3,
            alive_seconds=random.choice((0.0, 900.0)),
        ),
        attempts=tuple(attempts),
        start=0.0 if same_id else random.choice((0.0, 0.0, 10.0)) * chance(),
        with_receipts=chance() < 0.6,
        twin=random.choice((0.0, 5.0, 100.0)) * chance() if not same_id and chance() < 0.15 else None,
        aborts=chance() < 0.08,
        commits_twice=chance() < 0.08,
        gives_up=chance() < 0.4,
    )


def _name(random: Random, number: int, task: int, *, own: bool) -> str:
    name = random.choice(NAMES)
    return f"j{number}t{task}-{name}" if own or random.random() < 0.7 else name
