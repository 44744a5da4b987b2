"""Commands by the words that other tools use for them: who types one is told what it is called here."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

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
    """The commands; a word of `CALLED_HERE` is refused with the one that is meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name.

        Raises:
            click.UsageError: there is none by this name.
        """
        meant = CALLED_HERE.get(args[0])
        if meant is not None:
            ctx.fail(f"No such command {args[0]!r}. It is: {ctx.info_name} {meant}")
        return super().resolve_command(ctx, args)
