"""The commands. Each is a call of the Python API and a table; exit status 0 done, 1 a problem was found, 2 usage."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Collection, Sized
from contextlib import nullcontext
from typing import Annotated, TypeVar

import typer

from lockgate.api import jobs as api
from lockgate.api.advice import advise as advise_on
from lockgate.api.advice import check_pace, latency_at
from lockgate.api.destination import is_there, looking_run
from lockgate.api.files import files as files_of
from lockgate.api.job_runs import registry_of
from lockgate.api.location import absolute
from lockgate.api.outside import VERSION
from lockgate.api.show import read_any
from lockgate.api.telling import telling_why_it_takes_long
from lockgate.api.termination import print_notes
from lockgate.api.uploads import abort_uploads
from lockgate.api.uploads import uploads as uploads_of
from lockgate.cli.answers.advice import advice_answer
from lockgate.cli.answers.checks import files_answer, probes_answer, verification_answer
from lockgate.cli.answers.jobs import jobs_answer
from lockgate.cli.answers.plan import plan_answer
from lockgate.cli.answers.plugins import plugins_answer
from lockgate.cli.answers.recovery import aborted_answer, garbage_answer, recovery_answer
from lockgate.cli.answers.shown import committed_answer, shown_answer
from lockgate.cli.answers.uploads import given_up_answer, uploads_answer
from lockgate.cli.completion import complete_job, complete_option, complete_path
from lockgate.cli.terminal import (
    Answer,
    print_answer,
    print_error,
    progress_bars,
)
from lockgate.cli.typed_wrongly import Commands
from lockgate.engine.inspection.advise import Pace
from lockgate.model.durations import seconds_of
from lockgate.model.errors import JobNotFound, LockgateError, OptionError, UsageError
from lockgate.model.hive_output import PROTOCOL as HIVE
from lockgate.model.layout import SUCCESS
from lockgate.model.option_values import integer_of
from lockgate.model.options import JobOptions, names_given
from lockgate.model.prediction import at_once
from lockgate.model.redaction import HIDDEN, names_a_secret, redact
from lockgate.model.summary import Summary

INTERRUPTED = 128 + signal.SIGINT
"""The exit status of a command that was ended by Ctrl-C, as of every program that a shell sees end so."""

app = typer.Typer(
    name="lockgate",
    cls=Commands,
    help="Looks at, commits, recovers and cleans up the jobs below a destination.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"lockgate {VERSION}")
        raise typer.Exit


@app.callback()
def _lockgate(
    version: Annotated[
        bool, typer.Option("--version", help="Print Lockgate's version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Looks at, commits, recovers and cleans up the jobs below a destination."""


def _destination(given: str) -> str:
    """What is given as a destination, made absolute; told as every other mistake is if it cannot be one."""
    return absolute(given)


Url = Annotated[
    str,
    typer.Argument(
        metavar="DESTINATION",
        help="The destination: a URL or a local path.",
        show_default=False,
        callback=_destination,
        autocompletion=complete_path,
    ),
]
JobId = Annotated[
    str,
    typer.Argument(
        metavar="JOB",
        help="The job's id; lockgate jobs shows it.",
        show_default=False,
        autocompletion=complete_job,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        help="A job option, as name=value; can be repeated.",
        metavar="NAME=VALUE",
        autocompletion=complete_option,
    ),
]
ProtocolName = Annotated[
    str | None,
    typer.Option(
        "--protocol",
        metavar="NAME",
        help="Whose job it is, where its directories do not say: -o protocol=NAME. v1: Hadoop's FileOutputCommitter; "
        "hive: Hive's. Another than the job's own is refused.",
        show_default=False,
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log what is done to standard error.")]


_FLAGS = ("force", "plan", "undo", "finish", "dry-run", "json", "verbose", "latency", "rate")
"""What is given to a command by itself, and not by `-o`."""


def _chosen(given: list[str] | None) -> dict[str, str]:
    chosen: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise OptionError(
                f"an option is given as name=value, not as {HIDDEN if names_a_secret(text) else redact(text)!r}",
                next_step="such as -o alive_seconds=5m",
            )
        if name.replace("_", "-") in _FLAGS:
            raise OptionError(f"{name} is no job option", next_step=f"give it as --{name.replace('_', '-')}")
        if chosen.setdefault(name, value) != value:
            raise OptionError(
                f"the option {name} is given twice, as {chosen[name]!r} and {value!r}",
                where="-o",
                next_step="leave one of them out",
            )
    return chosen


def _with_protocol(given: list[str] | None, protocol: str | None) -> list[str] | None:
    return given if protocol is None else [*(given or ()), f"protocol={protocol}"]


Found = TypeVar("Found", bound=Sized)


def _or_nothing_there(found: Found, url: str, options: JobOptions) -> Found:
    """What was found; an empty answer about a destination that does not exist is a mistake in its name."""
    if not found and not is_there(url, options):
        raise UsageError(
            "there is nothing at this destination",
            where=url,
            next_step="check its name; or nothing was written there yet",
        )
    return found


def _no_trace(url: str, job_id: str, options: JobOptions) -> JobNotFound:
    there = ", ".join(state.job_id for state in api.jobs(url, options))
    of_hive = api.what_hive_left(url, options)
    return JobNotFound(
        f"there is no trace of a job {job_id}",
        where=f"{url}\nthere: {there or 'none'}",
        next_step=f"{of_hive}{'; else, ' if of_hive else ''}if the id is right, nothing is left to do: a job that was "
        "undone or aborted leaves nothing, nor does one that committed longer ago than remember_seconds",
    )


def _answer(
    as_json: bool, verbose: bool, given: list[str] | None, work: Callable[[JobOptions], Answer], url: str = ""
) -> None:
    """Run a command's work with its options; print its answer, or its error. That no job is found below `url` is told
    as what it is, if there is nothing at all."""
    if verbose:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    try:
        options = JobOptions.resolve(_chosen(given), environment=os.environ)
        # With `--verbose` warnings are on standard error already.
        told = nullcontext() if verbose else telling_why_it_takes_long(even_if_heard=True)
        with told, progress_bars(registry_of(options), wanted=not as_json):
            try:
                answer = work(options)
            except JobNotFound:
                if url:
                    _or_nothing_there((), url, options)
                raise
    except LockgateError as error:
        raise typer.Exit(print_error(error, as_json=as_json)) from error
    except KeyboardInterrupt as interruption:
        print_notes(interruption)
        raise typer.Exit(INTERRUPTED) from interruption
    print_answer(answer, as_json=as_json)
    raise typer.Exit(answer.status)


@app.command()
def plugins(
    details: Annotated[
        bool, typer.Option("--details", help="Say of each capability and attribute what it means, and whose it is.")
    ] = False,
    json: Json = False,
    option: Options = None,
    verbose: Verbose = False,
) -> None:
    """List plugins, with what their stores can do, and the protocols."""
    _answer(json, verbose, option, lambda options: plugins_answer(registry_of(options), details=details))


@app.command()
def show(
    url: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="A _SUCCESS, a task manifest, a commit record, or a destination.",
            show_default=False,
            callback=_destination,
            autocompletion=complete_path,
        ),
    ],
    json: Json = False,
    option: Options = None,
    verbose: Verbose = False,
) -> None:
    """Print a summary, a manifest or a commit record.

    Lockgate's, or Hadoop's."""

    def work(options: JobOptions) -> Answer:
        shown = read_any(url, options)
        is_destination = isinstance(shown, Summary) and not url.endswith(f"/{SUCCESS}")
        return shown_answer(shown, url, api.unfinished(url, options) if is_destination else ())

    _answer(json, verbose, option, work)


@app.command()
def jobs(
    url: Url,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol",
            metavar="NAME",
            help="List also what only this protocol takes for a job: -o protocol=NAME. hive: what Hive has left.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
    option: Options = None,
    verbose: Verbose = False,
) -> None:
    """List jobs at work, crashed ones, and the last that has finished."""

    option = _with_protocol(option, protocol)

    def work(options: JobOptions) -> Answer:
        states = _or_nothing_there(api.jobs(url, options), url, options)
        elsewhere = api.what_hive_left(url, options) if options.protocol == HIVE or not states else ""
        return jobs_answer(states, elsewhere)

    _answer(json, verbose, option, work)


Latency = Annotated[
    float | None,
    typer.Option(help="Milliseconds one store operation, a request, takes; measured there if not given.", min=0.0),
]
Rate = Annotated[float, typer.Option(help="Operations a second that the store allows; 0: no limit.", min=0.0)]


def _planned(
    url: str, job_id: str, options: JobOptions, told: Collection[str], latency: float | None = None, rate: float = 0.0
) -> Answer:
    """What `plan`, and `commit --plan`, show."""
    check_pace(latency, rate)
    made = api.plan(url, job_id, options, told=told)
    store = looking_run(url, options).store
    in_flight = at_once(options.requests_in_flight, store.calls_at_once)
    each = latency_at(url, options) if latency is None else latency / 1000
    return plan_answer(made, Pace(each, rate, in_flight), measured=latency is None)


@app.command()
def plan(
    url: Url,
    job_id: JobId,
    latency: Latency = None,
    rate: Rate = 0.0,
    protocol: ProtocolName = None,
    json: Json = False,
    option: Options = None,
    verbose: Verbose = False,
) -> None:
    """Show what a commit would do, and its cost.

    Touches nothing. Of a job whose transaction id was committed before it says by which job: then a commit commits
    nothing."""

    option = _with_protocol(option, protocol)

    def work(options: JobOptions) -> Answer:
        return _planned(url, job_id, options, names_given(_chosen(option)), latency, rate)

    _answer(json, verbose, option, work, url)


@app.command()
def commit(
    url: Url,
    job_id: JobId,
    force: Annotated[bool, typer.Option("--force", help="The job is surely over: do not look for life.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Only show what it would do, as lockgate plan does.")] = False,
    protocol: ProtocolName = None,
    json: Json = False,
    option: Options = None,
    verbose: Verbose = False,
) -> None:
    """Commit a job that is over.

    Its tasks must have committed: Lockgate's, or those of Hadoop's manifest committer, of S3A's magic committer, or,
    with --protocol v1, of Hadoop's FileOutputCommitter, or, with --protocol hive, of a Hive job. If its transaction id
    was committed before, nothing is committed: it says so, prints that commit's summary, and deletes what the job's
    tasks have staged."""

    option = _with_protocol(option, protocol)

    def work(options: JobOptions) -> Answer:
        told = names_given(_chosen(option))
        if plan:
            return _planned(url, job_id, options, told)
        summary, before = api.commit_and_tell(url, job_id, options=options, force=force, told=told)
        return committed_answer(summary, before, url, job_id)

    _answer(json, verbose, option, work, url)


@app.command()
def abort(
    url: Url,
    job_id: JobId,
    force: Annotated[bool, typer.Option("--force", help="The job is to end: do not look for life.")] = False,
    protocol: ProtocolName = None,
    json: Json = False,
    option: Options = None,
    verbose: Verbose = False,
) -> None:
    """Delete what a job left that has not committed.

    It must be over, and its job commit must not have begun to move files."""

    option = _with_protocol(option, protocol)

    def work(options: JobOptions) -> Answer:
        undone = api.abort_and_tell(url, job_id, options, force=force, told=names_given(_chosen(option)))
        return aborted_answer(job_id, undone)

    _answer(json, verbose, option, work, url)


@app.command()
def recover(
    url: Url,
    job_id: Annotated[
        str | None,
        typer.Argument(
            metavar="JOB",
            help="The job; all that crashed, if none is named.",
            show_default=False,
            autocompletion=complete_job,
        ),
    ] = None,
    undo: Annotated[
        bool,
        typer.Option(
            "--undo", help="Restore the destination instead of finishing; what the job's tasks have written goes."
        ),
    ] = False,
    finish: Annotated[bool, typer.Option("--finish", help="Finish, whatever the record would suggest.")] = False,
    force: Annotated[bool, typer.Option("--force", help="The driver is surely dead: do not wait.")] = False,
    protocol: ProtocolName = None,
    json: Json = False,
    option: Options = None,
    verbose: Verbose = False,
) -> None:
    """Finish, or undo, a commit whose driver died.

    Nothing to do is success, a job without a trace is not."""

    option = _with_protocol(option, protocol)

    def work(options: JobOptions) -> Answer:
        if undo and finish:
            raise OptionError(
                "--undo and --finish contradict each other",
                next_step="give one of them, or none: then the job's record decides",
            )
        chosen = True if undo else False if finish else None
        told = names_given(_chosen(option))
        found = api.recover(url, job_id, undo=chosen, force=force, options=options, told=told)
        if job_id is not None and found[job_id].outcome == "no trace":
            raise _no_trace(url, job_id, options)
        return recovery_answer(_or_nothing_there(found, url, options), named=job_id is not None)

    _answer(json, verbose, option, work)


@app.command()
def gc(
    url: Url,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Delete nothing, say what would be.")] = False,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol",
            metavar="NAME",
            help="Also what is a job to this protocol alone: -o protocol=NAME. Jobs of other protocols are not passed "
            "over for it.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
    option: Options = None,
    verbose: Verbose = False,
) -> None:
    """Delete what jobs that are over left behind.

    Never a job that may be alive, unless alive_seconds=0 says that none is."""

    option = _with_protocol(option, protocol)

    def work(options: JobOptions) -> Answer:
        found = api.collect_garbage(url, dry_run=dry_run, options=options)
        return garbage_answer(_or_nothing_there(found, url, options))

    _answer(json, verbose, option, work)


def _seconds(text: str) -> float:
    try:
        return seconds_of(text)
    except ValueError:
        raise OptionError(
            f"--older-than takes seconds, or a length of time, not {text!r}", next_step="such as --older-than 7d"
        ) from None


def _bytes(text: str) -> int:
    try:
        return integer_of(text)
    except ValueError:
        raise OptionError(f"--bytes takes bytes, or a size, not {text!r}", next_step="such as --bytes 10g") from None


uploads_app = typer.Typer(no_args_is_help=True, help="Look at uploads that wait to be completed, or give them up.")
app.add_typer(uploads_app, name="uploads")


@uploads_app.command("list")
def list_uploads(url: Url, json: Json = False, option: Options = None, verbose: Verbose = False) -> None:
    """List uploads below a destination that wait to be completed.

    Anybody's: those of jobs at work among them."""

    def work(options: JobOptions) -> Answer:
        return uploads_answer(_or_nothing_there(uploads_of(url, options), url, options))

    _answer(json, verbose, option, work)


@uploads_app.command("abort")
def give_uploads_up(
    url: Url,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...",
            help="Paths below the destination; without any, --older-than says which.",
            show_default=False,
        ),
    ] = None,
    older_than: Annotated[
        str, typer.Option("--older-than", help="Only those begun so long ago, such as 7d or 12h.", metavar="AGE")
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Also those that a job may still complete.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Give nothing up, say what would be.")] = False,
    json: Json = False,
    option: Options = None,
    verbose: Verbose = False,
) -> None:
    """Give up uploads that nobody will complete.

    What a job may still complete is kept."""

    def work(options: JobOptions) -> Answer:
        age = _seconds(older_than) if older_than else None
        found = abort_uploads(url, paths or (), older_than=age, force=force, dry_run=dry_run, options=options)
        return given_up_answer(found, dry_run=dry_run)

    _answer(json, verbose, option, work)


@app.command()
def verify(url: Url, json: Json = False, option: Options = None, verbose: Verbose = False) -> None:
    """Compare the destination with its last commit.

    Files that are missing, changed, swapped, moved or extra."""
    _answer(json, verbose, option, lambda options: verification_answer(api.verify(url, options), url), url)


@app.command()
def files(url: Url, json: Json = False, option: Options = None, verbose: Verbose = False) -> None:
    """List the files of committed jobs.

    What a reader should read; of each other file why it does not count, and what cannot be known."""

    def work(options: JobOptions) -> Answer:
        found = files_of(url, options)
        _or_nothing_there([*found.files, *found.left_out], url, options)
        return files_answer(found, url)

    _answer(json, verbose, option, work, url)


@app.command()
def doctor(url: Url, json: Json = False, option: Options = None, verbose: Verbose = False) -> None:
    """Try a store out, beside what its plugin claims.

    Directories of the destination that were not there are made, and deleted at the end."""
    _answer(json, verbose, option, lambda options: probes_answer(api.doctor(url, options), url))


@app.command()
def advise(
    url: Url,
    files: Annotated[int, typer.Option(help="Files that the job will write.", min=1)] = 1000,
    total: Annotated[
        str, typer.Option("--bytes", help="Bytes in all of them, such as 5000000 or 10g.", metavar="SIZE")
    ] = "0",
    tasks: Annotated[int, typer.Option(help="Tasks that write them, each as many.", min=1)] = 100,
    directories: Annotated[
        int,
        typer.Option(
            help="Directories that they are in; each task writes to all that it has files for. 0: none is made, "
            "all files are in the destination itself.",
            min=0,
        ),
    ] = 1,
    conflict: Annotated[
        str | None,
        typer.Option(help="The job's conflict policy: -o conflict=POLICY.", metavar="POLICY", show_default=False),
    ] = None,
    replaced: Annotated[int, typer.Option(help="Files that are there, and that this policy replaces.", min=0)] = 0,
    latency: Latency = None,
    rate: Rate = 0.0,
    json: Json = False,
    option: Options = None,
    verbose: Verbose = False,
) -> None:
    """Say which protocols are safe, what they cost, and which to take.

    The store is tried out, as by doctor; a protocol that asks for accept_unsafe is listed and never advised.
    Of each it is told which conflict policies it refuses; all are told, whatever protocol an option names."""

    if conflict is not None:
        option = [*(option or ()), f"conflict={conflict}"]

    def work(options: JobOptions) -> Answer:
        found = advise_on(
            url,
            files=files,
            bytes=_bytes(total),
            tasks=tasks,
            directories=directories,
            replaced=replaced,
            latency=latency,
            rate=rate,
            options=options,
        )
        return advice_answer(found)

    _answer(json, verbose, option, work)


def main() -> None:
    """The entry point of the script `lockgate`."""
    try:
        app()
    except KeyboardInterrupt:  # before a command has begun
        sys.exit(INTERRUPTED)
