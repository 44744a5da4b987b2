"""The commands. Each is a call of the Python API and a table; exit status 0 done, 1 a problem was found, 2 usage."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from lockgate.api import jobs as api
from lockgate.api.destination import looking_run
from lockgate.api.job_runs import registry_of
from lockgate.api.show import read_any
from lockgate.cli import tables
from lockgate.cli.terminal import Answer, print_answer, print_error, progress_bars
from lockgate.model.errors import LockgateError, OptionError
from lockgate.model.options import JobOptions
from lockgate.model.prediction import predict_operations, predict_seconds

app = typer.Typer(
    name="lockgate",
    help="Looks at, commits, recovers and cleans up the jobs below a destination.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _absolute(url: str) -> str:
    """A path is taken from here, as every command line tool does."""
    return url if "://" in url else os.path.abspath(url)


Url = Annotated[
    str, typer.Argument(help="The destination: a URL or a local path.", show_default=False, callback=_absolute)
]
JobId = Annotated[str, typer.Argument(help="The job's id; lockgate jobs shows it.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", help="A job option, as name=value; can be repeated.", metavar="NAME=VALUE"),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log what is done to standard error.")]


def _options(given: list[str] | None) -> JobOptions:
    chosen: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise OptionError(f"an option is given as name=value, not as {text!r}")
        chosen[name] = value
    return JobOptions.resolve(chosen, environment=os.environ)


def _answer(as_json: bool, verbose: bool, given: list[str] | None, work: Callable[[JobOptions], Answer]) -> None:
    """Run a command's work with its options; print its answer, or its error."""
    if verbose:
        logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        options = _options(given)
        with progress_bars(registry_of(options), wanted=not as_json):
            answer = work(options)
    except LockgateError as error:
        raise typer.Exit(print_error(error, as_json=as_json)) from error
    print_answer(answer, as_json=as_json)
    raise typer.Exit(answer.status)


@app.command()
def plugins(json: Json = False, option: Options = None, verbose: Verbose = False) -> None:
    """List the plugins with their versions, and what their stores can do."""
    _answer(json, verbose, option, lambda options: tables.plugins_answer(registry_of(options)))


@app.command()
def show(
    url: Annotated[
        str,
        typer.Argument(
            help="A _SUCCESS, a task manifest, a commit record, or a destination.",
            show_default=False,
            callback=_absolute,
        ),
    ],
    json: Json = False,
    option: Options = None,
    verbose: Verbose = False,
) -> None:
    """Print a summary, a task manifest or a commit record, Lockgate's or Hadoop's."""
    _answer(json, verbose, option, lambda options: tables.shown_answer(read_any(url, options), url))


@app.command()
def jobs(url: Url, json: Json = False, option: Options = None, verbose: Verbose = False) -> None:
    """List the jobs in flight, crashed and finished, with age and phase."""
    _answer(json, verbose, option, lambda options: tables.jobs_answer(api.jobs(url, options)))


@app.command()
def plan(
    url: Url,
    job_id: JobId,
    latency: Annotated[float, typer.Option(help="Milliseconds one store operation takes.", min=0.0)] = 20.0,
    rate: Annotated[float, typer.Option(help="Operations a second that the store allows; 0: no limit.", min=0.0)] = 0.0,
    json: Json = False,
    option: Options = None,
    verbose: Verbose = False,
) -> None:
    """Show what a job commit would do, and what it would cost, without touching anything."""

    def work(options: JobOptions) -> Answer:
        made = api.plan(url, job_id, options)
        operations = predict_operations(made, options, looking_run(url, options).store.capabilities)
        in_flight = options.requests_in_flight
        seconds = predict_seconds(operations, latency=latency / 1000, rate=rate, in_flight=in_flight)
        limit = f", {rate:g} operations a second" if rate else ""
        basis = f"at {latency:g} ms an operation, {in_flight} in flight{limit}"
        return tables.plan_answer(made, operations, seconds, basis)

    _answer(json, verbose, option, work)


@app.command()
def commit(url: Url, job_id: JobId, json: Json = False, option: Options = None, verbose: Verbose = False) -> None:
    """Commit a job whose tasks have committed: Lockgate's, or Hadoop's manifest committer's."""
    _answer(
        json,
        verbose,
        option,
        lambda options: tables.summary_answer(api.commit(url, job_id, options=options), url),
    )


@app.command()
def abort(url: Url, job_id: JobId, json: Json = False, option: Options = None, verbose: Verbose = False) -> None:
    """Delete everything that a job left, before its job commit."""

    def work(options: JobOptions) -> Answer:
        api.abort(url, job_id, options)
        return Answer({"job_id": job_id, "outcome": "aborted"}, sentences=[f"{job_id}: aborted, nothing is left of it"])

    _answer(json, verbose, option, work)


@app.command()
def recover(
    url: Url,
    job_id: Annotated[str | None, typer.Argument(help="The job; all that crashed, if none is named.")] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Restore the destination instead of finishing.")] = False,
    finish: Annotated[bool, typer.Option("--finish", help="Finish, whatever the record would suggest.")] = False,
    force: Annotated[bool, typer.Option("--force", help="The driver is surely dead: do not wait.")] = False,
    json: Json = False,
    option: Options = None,
    verbose: Verbose = False,
) -> None:
    """Finish, or undo, a job commit whose driver died. Nothing to do is success."""

    def work(options: JobOptions) -> Answer:
        if undo and finish:
            raise OptionError("--undo and --finish contradict each other")
        chosen = True if undo else False if finish else None
        return tables.recovery_answer(api.recover(url, job_id, undo=chosen, force=force, options=options))

    _answer(json, verbose, option, work)


@app.command()
def gc(
    url: Url,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Delete nothing, say what would be.")] = False,
    json: Json = False,
    option: Options = None,
    verbose: Verbose = False,
) -> None:
    """Delete what jobs that are over left behind; never a job that may be alive."""
    _answer(
        json,
        verbose,
        option,
        lambda options: tables.garbage_answer(api.collect_garbage(url, dry_run=dry_run, options=options)),
    )


@app.command()
def verify(url: Url, json: Json = False, option: Options = None, verbose: Verbose = False) -> None:
    """Compare the destination with its last commit: missing, changed, swapped and extra files."""
    _answer(json, verbose, option, lambda options: tables.verification_answer(api.verify(url, options)))


@app.command()
def doctor(url: Url, json: Json = False, option: Options = None, verbose: Verbose = False) -> None:
    """Try a store out, and compare what it does with what its plugin claims."""
    _answer(json, verbose, option, lambda options: tables.probes_answer(api.probe(url, options), url))


def main() -> None:
    """The entry point of the script `lockgate`."""
    app()
