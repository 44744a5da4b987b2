"""What was typed wrongly: commands by the words of other tools, and usage errors for programs that ask for `--json`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from lockgate.cli.terminal import print_error
from lockgate.model.errors import LockgateError, UsageError

JSON = "--json"
"""The option of every command that prints one document."""

_TypedWrongly: type[Exception] = typer.BadParameter.__mro__[1]
"""Click's `UsageError`: of click itself, or of the copy that newer versions of typer hold, which has no public name."""

CALLED_HERE = {
    "cancel": "abort",
    "check": "verify",
    "clean": "gc",
    "cleanup": "gc",
    "finish": "recover --finish",
    "list": "jobs",
    "ls": "jobs",
    "resume": "recover",
    "rollback": "recover --undo",
    "status": "jobs",
    "undo": "recover --undo",
    "vacuum": "gc",
}
"""What a word of other tools is called here."""


class Commands(TyperGroup):
    """The commands; a word of `CALLED_HERE` is refused with the one that is meant. Where `--json` is given, a usage
    error is a document, as every other error is."""

    def main(  # type: ignore[override]  # no caller gives more than the arguments by position
        self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **extra: Any
    ) -> Any:
        """Run a command, and exit with its status."""
        as_json = JSON in (sys.argv[1:] if args is None else args)
        try:
            status = super().main(args, standalone_mode=standalone_mode and not as_json, **extra)
        except LockgateError as error:
            sys.exit(print_error(error, as_json=as_json))
        except _TypedWrongly as error:
            if not (as_json and standalone_mode):
                raise
            sys.exit(print_error(_as_usage_error(error), as_json=True))
        if as_json and standalone_mode:
            sys.exit(status)
        return status

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name.

        Raises:
            click.UsageError: there is none by this name.
        """
        meant = CALLED_HERE.get(args[0])
        if meant is not None:
            ctx.fail(f"No such command {args[0]!r}. It is: {ctx.info_name} {meant}")
        return super().resolve_command(ctx, args)


def _as_usage_error(error: Any) -> UsageError:
    command = error.ctx.command_path if error.ctx is not None else "lockgate"
    return UsageError(error.format_message(), where=command, next_step=f"{command} --help tells what it takes")
