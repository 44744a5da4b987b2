"""What `--json` prints, command by command: each key of the document, and what it means.

A key is told by its path: `files[].length` is the length of each of the files, a word in capitals stands for names that
are not fixed, and a key that ends with `?` is there only where there is something to say. A command's tests compare
these tables with what it prints; `docs/cli-json.md` is generated from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lockgate.engine.inspection.list_jobs import JobStatus
from lockgate.engine.inspection.probe_store import VERDICT_MEANING
from lockgate.engine.inspection.verify import FAULT_MEANING
from lockgate.engine.run.protocol import ATTRIBUTE_MEANING
from lockgate.model.phases import Phase


@dataclass(frozen=True)
class Document:
    """What one command prints with `--json`, in a sentence, and its keys."""

    what: str
    keys: Mapping[str, str]


def _one_of(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


_PHASES = f"its phase: {_one_of(Phase)}; null before its commit has begun"
_SUMMARY = {
    "name": "Hadoop's type of a summary",
    "success": "whether the job has committed",
    "committer": "who committed it: `lockgate`, or the class of another committer",
    "timestamp?": "when, in milliseconds since 1970",
    "date?": "the same, in words",
    "hostname?": "where its driver ran",
    "description?": "the job's name",
    "jobId?": "the job",
    "jobIdSource?": "where the id came from",
    "metrics?.NAME": "Hadoop's older counters",
    "diagnostics?.NAME": "what else its committer said",
    "filenames?[]": "URLs of the first hundred files",
    "iostatistics?.counters.NAME": "counts of files, bytes, rows and of what was asked of the store, by name",
    "iostatistics?.gauges?.NAME": "as in Hadoop",
    "iostatistics?.minimums?.NAME": "as in Hadoop",
    "iostatistics?.maximums?.NAME": "as in Hadoop",
    "iostatistics?.meanstatistics?.NAME.samples?": "as in Hadoop",
    "iostatistics?.meanstatistics?.NAME.sum?": "as in Hadoop",
    "lockgate?.version?": "the version of Lockgate; without a key `lockgate` it is another committer's summary",
    "lockgate?.destination?": "the destination",
    "lockgate?.protocol?": "the protocol, if it is not `manifest`",
    "lockgate?.store?": "the store's plugin",
    "lockgate?.policy?": "the conflict policy, if it is not `append`",
    "lockgate?.txn_id?": "the transaction id",
    "lockgate?.attempts?": "how many task attempts were committed",
    "lockgate?.files?.count?": "how many files were committed at the destination; `locations` has the others",
    "lockgate?.files?.inline?[]": "each file: a list of its path, its length in bytes and its identity on the store",
    "lockgate?.files?.companion?": "the file that has this list, where it is long",
    "lockgate?.files?.digest?": "that file's SHA-256",
    "lockgate?.bytes?": "bytes in these files",
    "lockgate?.replaced?": "how many files were replaced",
    "lockgate?.renames_recovered?": "renames whose answer was lost, and that had been done",
    "lockgate?.weaker?[]": "capabilities of the store that were relied on and are weaker than usual",
    "lockgate?.unsafe?": "what the protocol does not promise",
    "lockgate?.stage_seconds?.STAGE": "how long each stage took",
    "lockgate?.extra?.NAME[]": "what tasks have said under names of their own, such as `choice`",
    "lockgate?.left_out?[]": "tasks that had begun and not committed, and were left out",
    "lockgate?.left_out_stays?": "what of theirs stays all the same, in words",
    "lockgate?.outputs_beside?[]": "other output that Hive had left beside, which was not committed, in words",
    "lockgate?.error?": "why it failed",
    "lockgate?.locations?[].url": "another place where the job has committed files, which are not among `files`",
    "lockgate?.locations?[].files?": "how many",
    "lockgate?.locations?[].bytes?": "and their bytes",
    "lockgate?.marker?": "what tells the job from another of its id",
    "lockgate?.job_attempt?": "which attempt at the job has committed it, if not the first",
}

_PACE = {
    "latency_ms": "what one request takes",
    "latency_measured": "whether that was measured there",
    "rate": "requests a second that the store allows; 0: no limit",
    "in_flight": "requests at once",
}

_UNFINISHED = {
    ".job_id": "a job whose commit has not come to its end",
    ".status": "how it stands, as in `jobs`",
    ".phase": "its phase, as in `jobs`",
}

_BEFORE = {
    "committed_before?.txn_id": "the job's transaction id, where that was committed before, and nothing of this job",
    "committed_before?.job_id": "the job that has committed it, whose summary this is; empty where that was forgotten",
    "committed_before?.stays": "what of this job was not deleted, in words; empty where all was",
}

DOCUMENTS: Mapping[str, Document] = {
    "plugins": Document(
        "One object.",
        {
            "plugins[].name": "the plugin",
            "plugins[].distribution": "the package that it came with",
            "plugins[].version": "that package's version",
            "plugins[].built_in": "whether it comes with Lockgate itself",
            "plugins[].schemes[]": "the schemes of the URLs that it opens",
            "plugins[].capabilities[]": "what its store can do",
            "plugins[].failure": "why it could not be loaded; empty otherwise",
            "protocols[].name": "the protocol",
            "protocols[].needs[]": "capabilities that it needs of a store; `atomic-rename`: or one that says how it is "
            "weaker",
            "protocols[].needs_one_of[][]": "and sets of which the store has to have one",
            **{f"protocols[].attributes.{name}": meaning for name, meaning in ATTRIBUTE_MEANING.items()},
            "protocols[].unsafe": "what it may lose, where it asks for accept_unsafe=true; empty otherwise",
            "policies[]": "the conflict policies",
        },
    ),
    "show": Document(
        "The file as it is. Of a summary these keys, which `commit` prints too; of a task manifest `job_id`, `task_id` "
        "and so on; of a commit record its fields. A count that is not there is 0. One key is in no file, "
        "`unfinished`, of a destination: where it is there, another job has begun to change what the last one left.",
        _SUMMARY | {f"unfinished?[]{key}": meaning for key, meaning in _UNFINISHED.items()},
    ),
    "jobs": Document(
        "A list: an object for each job, the latest first.",
        {
            "[].job_id": "the job",
            "[].job_attempt": "which attempt at it, from 0",
            "[].status": f"how it stands: {_one_of(JobStatus)}",
            "[].phase": _PHASES,
            "[].protocol": "its protocol; empty where that is not known",
            "[].last_seen": "its latest sign of life, in seconds since 1970; 0 where there is none",
            "[].age_seconds": "how long ago that was; null where there is none",
            "[].tasks_committed": "how many of its tasks have committed",
            "[].driver": "who drives or drove it, in words: the user and the host; where its status is `committed` the "
            "host alone",
            "[].driver_gone": "whether its driver is known to be dead: it ran on this machine. false where nobody can "
            "tell",
            "[].directory": "its directory, relative to the destination; of what Hive has left elsewhere, its URL",
            "[].problem": "what somebody has to know of it; empty otherwise",
            "[].part_of": "the destination of the job that it is a part of, and that is ended there; empty otherwise",
        },
    ),
    "plan": Document(
        "One object. `commit --plan` prints the same.",
        {
            "policy": "the conflict policy",
            "tasks": "how many task attempts would be committed",
            "files": "how many files",
            "bytes": "and their bytes",
            "directories_to_make[]": "directories that are missing",
            "renames[].source": "a file that would be renamed, relative to the destination",
            "renames[].target": "its name afterwards",
            "renames[].length": "its bytes",
            "sources_to_come": "whether these sources are not there yet: the commit first moves the tasks' "
            "directories to these names",
            "completions[].target": "a file whose upload would be completed",
            "completions[].length": "its bytes",
            "in_place[].target": "a file that is at its name already",
            "in_place[].length": "its bytes",
            "set_aside[].path": "a file that would be replaced",
            "set_aside[].length": "its bytes",
            "set_aside[].version_kept?": "its version, where a new file of its name goes above it",
            "set_aside_directories[]": "directories that would be set aside whole",
            "choices?[]": "where a task had several attempts: the task, which was taken, and why, in words",
            "left_out?[]": "tasks that have begun and not committed: `commit` takes `--force` for that",
            "left_out_stays?": "what of theirs stays all the same, in words",
            "outputs_beside?[]": "other output that Hive has left beside, in words: `commit` takes `--force` for that",
            "committed_before?.txn_id": "the job's transaction id, where that was committed before: then a commit "
            "moves nothing, and all else here is empty",
            "committed_before?.job_id": "the job that has committed it; empty where that was forgotten",
            "operations.KIND": "how many requests of each kind it would take at least",
            "seconds": "how long that takes at least",
            **_PACE,
        },
    ),
    "commit": Document("The summary, as `show` prints it; without `unfinished`.", {**_SUMMARY, **_BEFORE}),
    "abort": Document(
        "One object.",
        {
            "job_id": "the job",
            "outcome": "`aborted`",
            "left[]": "paths where the job had put a file that somebody may have changed since, and that stay",
            "may_stay": "what else may be in the destination, which nobody can tell by itself, in words; mostly empty",
        },
    ),
    "recover": Document(
        "An object with a key for each job that was found.",
        {
            "JOB.outcome": "`finished`, `undone`, `nothing` to do, `not begun`, `at work` or `failed`",
            "JOB.phase": f"the phase that it was in: {_one_of(Phase)}; null where its commit had not begun",
            "JOB.files": "how many files the finished job has, at all of its locations; 0 otherwise",
            "JOB.problem": "why nothing was done, or it failed; or what else somebody has to know; empty otherwise",
            "JOB.missing[]": "replaced files that somebody had deleted, and that did not come back",
            "JOB.left[]": "files of the job that stay: somebody may have changed them since, or another "
            "program has put them there",
            "JOB.given_back": "where all is that the tasks of an undone job of Hive's have written, as before its "
            "commit; empty otherwise: of an undone job that is deleted",
            "JOB.next_step": "what to do with that, or with a job that nothing was done with, in words; mostly empty",
            "JOB.may_stay": "what of an undone job may be in the destination all the same, in words; mostly empty",
        },
    ),
    "gc": Document(
        "A list: an object for each thing that was looked at.",
        {
            "[].path": "relative to the destination",
            "[].action": "`deleted`, `would delete` (`--dry-run`), `kept` or `failed`",
            "[].why": "the reason, in words",
            "[].needs_somebody": "whether it is kept until somebody ends it, as what a crashed job commit has left; or "
            "is gone, and files of it stay that somebody has to look at",
        },
    ),
    "verify": Document(
        "One object.",
        {
            "job_id": "the job that was last committed",
            "checked": "how many of its files were looked at",
            "others": "how many other files there are, which its list does not name",
            "findings[].fault": _one_of(FAULT_MEANING),
            "findings[].path": "the file",
            "findings[].detail": "more of it, in words",
            **{f"unfinished[]{key}": meaning for key, meaning in _UNFINISHED.items()},
        },
    ),
    "files": Document(
        "One object.",
        {
            "files[].path": "a file that counts, relative to the destination",
            "files[].url": "its URL",
            "files[].length": "its bytes",
            "files[].listed": "whether it is in the list of a committed job, as it is there",
            "left_out[].path": "a file that does not count",
            "left_out[].why": "the reason, in words",
            "doubts[]": "what is not known, in words",
            **{f"unfinished[]{key}": meaning for key, meaning in _UNFINISHED.items()},
            "unfinished[].job_id": "a job whose commit has not come to its end: so files may be missing, or too many",
        },
    ),
    "doctor": Document(
        "A list: an object for each thing that was tried.",
        {
            "[].probe": "what was tried",
            "[].claimed": "whether the plugin claims it",
            "[].holds": "whether it holds; null where it cannot be tried",
            "[].verdict": _one_of(VERDICT_MEANING),
            "[].detail": "more of it, in words",
            "[].seconds": "how long it took",
        },
    ),
    "advise": Document(
        "One object.",
        {
            "url": "the destination",
            "take": "the protocol to take; empty where none is safe",
            "reason": "why, in words",
            "files": "for how many files",
            "bytes": "of how many bytes",
            "tasks": "of how many tasks",
            "directories": "in how many directories",
            "conflict": "the conflict policy",
            "replaced": "how many files that replaces",
            **_PACE,
            "broken_claims[]": "capabilities that the plugin claims and that do not hold",
            "protocols[].protocol": "a protocol, the best first",
            "protocols[].verdict": "`safe`, `unsafe`, `others' jobs` or `refused`",
            "protocols[].why": "the reason, in words",
            "protocols[].promises[]": "attributes that it promises",
            "protocols[].lacks[]": "attributes that it does not promise",
            "protocols[].refuses[]": "conflict policies and options that it refuses",
            "protocols[].refuses_same_names": "why it replaces no file by one of its name; empty where it does",
            "protocols[].spark_overwrite": "whether it takes one of the policies that Spark's mode `overwrite` means",
            "protocols[].write_operations.KIND": "requests of attempts before their commits, at least, beside the "
            "files' own",
            "protocols[].task_operations.KIND": "requests of all task commits, at least",
            "protocols[].job_operations.KIND": "requests of the job commit, at least: what `plan` predicts of that job",
            "protocols[].task_seconds": "how long a task commit takes at least; null where it is refused",
            "protocols[].job_seconds": "how long the job commit takes at least; null where it is refused",
            "protocols[].bytes_copied": "bytes that are copied; null where it is refused",
        },
    ),
    "uploads list": Document(
        "A list: an object for each upload.",
        {"[].path": "the file that it is to become", "[].begun": "when, in seconds since 1970"},
    ),
    "uploads abort": Document(
        "A list: an object for each upload that was looked at.",
        {
            "[].path": "the file that it was to become",
            "[].action": "`given up`, `would give up` (`--dry-run`) or `kept`",
            "[].why": "why it is kept; empty otherwise",
            "[].begun": "when, in seconds since 1970",
        },
    ),
}

ERROR = Document(
    "One object, whatever the command.",
    {
        "error": "the name of the error's class",
        "what": "what happened",
        "where": "the URL, the option, the file; empty where there is none",
        "next_step": "what to do next",
    },
)
