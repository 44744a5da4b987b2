"""Writes what the docs take from the code: the options, the command line, the phases and their picture, the paths.

python docs/generate.py            writes the pages
python docs/generate.py --check    says which are not current, with exit status 1
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lockgate
import lockgate_testkit
import typer
from lockgate import plugin
from lockgate.cli.documents import DOCUMENTS, ERROR
from lockgate.cli.main import app
from lockgate.engine.inspection.list_jobs import STATUS_MEANING, JobStatus
from lockgate.engine.inspection.verify import FAULT_MEANING
from lockgate.engine.run.protocol import Protocol
from lockgate.engine.run.runtime import EVENTS
from lockgate.engine.run.store import Store
from lockgate.model import layout
from lockgate.model.capabilities import MEANING
from lockgate.model.option_names import HADOOP_WITHOUT_EFFECT
from lockgate.model.options import option_table
from lockgate.model.phases import PHASES, Phase
from lockgate.plugins.registry import PluginRegistry
from lockgate.spark.formats.registry import FORMATS
from lockgate.spark.write_options import WRITER_OPTIONS

DOCS = Path(__file__).parent


def options() -> str:
    """Every job option, with Hadoop's name beside it."""
    lines = ["| option | default | what it does | Hadoop's name |", "| --- | --- | --- | --- |"]
    for row in option_table():
        hadoop = ", ".join(f"`{name}`" for name in (row.hadoop, *row.hadoop_also) if name)
        lines.append(f"| `{row.name}` | {row.default} | {row.meaning} | {hadoop} |")
    return "\n".join(lines)


def hadoop_without_effect() -> str:
    """Hadoop's options that do nothing here."""
    lines = ["| Hadoop's option | why it does nothing here |", "| --- | --- |"]
    lines += [f"| `{name}` | {why} |" for name, why in HADOOP_WITHOUT_EFFECT.items()]
    return "\n".join(lines)


def writer_options() -> str:
    """The options of a Spark write."""
    lines = ["| option | what it does |", "| --- | --- |"]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in WRITER_OPTIONS.items()]
    return "\n".join(lines)


def formats() -> str:
    """The file formats."""
    lines = ["| format | compression (the default first) | options of its own |", "| --- | --- | --- |"]
    for each in FORMATS.values():
        codecs = [each.default_compression, *(name for name in each.compressions if name != each.default_compression)]
        settings = ", ".join(f"`{name}`" for name in each.settings)
        lines.append(f"| `{each.name}` | {', '.join(codecs)} | {settings} |")
    return "\n".join(lines)


def commands() -> str:
    """Every command with its arguments and options."""
    group: Any = typer.main.get_command(app)
    parts = []
    for name, command in _commands_of(group):
        arguments = [each for each in command.params if each.param_type_name == "argument"]
        given = "".join(f" {_placeholder(each)}" for each in arguments)
        rows = [f"| `{_placeholder(each)}` | {each.help} |" for each in arguments]
        rows += [
            f"| `{', '.join(each.opts)}{_value_of(each)}` | {each.help}{_default_of(each)} |"
            for each in command.params
            if each.param_type_name == "option"
        ]
        table = "\n".join(["| | |", "| --- | --- |", *rows])
        parts.append(f"## {name}\n\n`lockgate {name}{given}`\n\n{command.help}\n\n{table}")
    return "\n\n".join(parts)


def documents() -> str:
    """What each command prints for programs."""
    parts = []
    for title, document in {**DOCUMENTS, "An error": ERROR}.items():
        # What one command shares with another is told once.
        told = next(
            name for name, each in {**DOCUMENTS, "": ERROR}.items() if document.keys.items() <= each.keys.items()
        )
        keys = document.keys if told in (title, "") else {}
        table = ["| key | meaning |", "| --- | --- |", *(f"| `{key}` | {means} |" for key, means in keys.items())]
        parts.append(f"## {title}\n\n{document.what}" + ("\n\n" + "\n".join(table) if keys else ""))
    return "\n\n".join(parts)


def _default_of(parameter: Any) -> str:
    """What an option with a value is where it is not given, if it is anything."""
    if parameter.is_flag or parameter.default in (None, "", ()) or not parameter.show_default:
        return ""
    return f" Default: {str(parameter.default).removesuffix('.0')}."


def _commands_of(group: Any) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from ((f"{name} {below}", each) for below, each in _commands_of(command))
        else:
            yield name, command


def _value_of(option: Any) -> str:
    return "" if option.is_flag else f" {option.metavar or option.name.upper()}"


def _placeholder(argument: Any) -> str:
    return str(argument.metavar) if argument.required else f"[{argument.metavar}]"


def phases() -> str:
    """The table of phases."""
    lines = [
        "| phase | what it means | what readers see | recovery | can be undone |",
        "| --- | --- | --- | --- | --- |",
    ]
    for phase, rule in PHASES.items():
        undo = "yes" if rule.can_undo else "no"
        lines.append(f"| {phase.value} | {rule.meaning} | {rule.readers_see} | {rule.recovery} | {undo} |")
    return "\n".join(lines)


def phases_picture() -> str:
    """The phases and what may follow each, as a state diagram."""

    def name(phase: Phase) -> str:
        return phase.value.replace("-", "_")

    lines = ["```mermaid", "stateDiagram-v2", "    direction LR"]
    lines += [f'    state "{phase.value}" as {name(phase)}' for phase in PHASES]
    lines.append(f"    [*] --> {name(Phase.CLAIMED)}: commit.json created, by one driver only")
    told = {
        (Phase.MOVING, Phase.PUBLISHING): "every file is in place",
        (Phase.PUBLISHING, Phase.COMMITTED): "_SUCCESS renamed: the commit point",
        (Phase.CLAIMED, Phase.REFUSED): "nothing was moved",
        (Phase.CLAIMED, Phase.MOVING): "the plan is made and may go on",
    }
    for phase, rule in PHASES.items():
        for after in sorted(rule.may_become - {phase}, key=list(PHASES).index):
            label = told.get((phase, after), "")
            lines.append(f"    {name(phase)} --> {name(after)}" + (f": {label}" if label else ""))
    lines += [f"    {name(Phase.COMMITTED)} --> [*]", f"    {name(Phase.ROLLED_BACK)} --> [*]", "```"]
    return "\n".join(lines)


def paths() -> str:
    """Every path of the protocol, from the module that states them."""
    text = layout.__doc__ or ""
    table = [line for line in text.splitlines() if line.startswith("|")]
    return "\n".join(table)


TO_TYPE = {
    JobStatus.RUNNING: "nothing; `lockgate abort DESTINATION JOB --force` if it is to end",
    JobStatus.COMMITTING: "nothing; it ends by itself, or shows as crashed",
    JobStatus.CRASHED: "`lockgate recover DESTINATION JOB`; `--undo` for the state before",
    JobStatus.ABANDONED: "`lockgate commit DESTINATION JOB` if its tasks had committed (another program's: with "
    "`--protocol` and its options again), else `lockgate gc DESTINATION`",
    JobStatus.REFUSED: "`lockgate commit DESTINATION JOB` once the reason is gone (another program's: with "
    "`--protocol` and its options again), or `lockgate abort DESTINATION JOB`",
    JobStatus.LEFT_BEHIND: "`lockgate gc DESTINATION`; run it again only if its phase is rolled-back",
    JobStatus.COMMITTED: "nothing; `lockgate verify DESTINATION` if in doubt",
    JobStatus.UNREADABLE: "`lockgate jobs DESTINATION` with the version of Lockgate that wrote it",
    JobStatus.OTHER_COMMITTER: "end it where it was started, or with `lockgate commit DESTINATION JOB --protocol v1`; "
    "where `problem` says that no task is known there, nothing: `lockgate gc` deletes the directory if it is empty",
    JobStatus.RECORD_LOST: "`lockgate recover DESTINATION JOB --undo`, or `--finish`",
}
"""What an operator types about a job of each status."""

DRIVER_GONE = (
    "its driver died before the job commit. One of its tasks was at work a short while ago, and may still be, so it is "
    "not called abandoned yet"
)
TO_TYPE_DRIVER_GONE = (
    "wait until it shows as abandoned: `alive_seconds`, 15 minutes, after its last task's sign of life. Or, if its "
    "tasks are surely over, too: `lockgate commit DESTINATION JOB --force` if all of them had committed (`lockgate "
    "plan DESTINATION JOB` lists those that began and did not), else `lockgate abort DESTINATION JOB --force`"
)
"""What a job looks like right after its driver was killed."""


def statuses() -> str:
    """What `lockgate jobs` says of a job, and the command that answers it."""
    lines = ["| what `lockgate jobs` says | what it means | what to type |", "| --- | --- | --- |"]
    for status, meaning in STATUS_MEANING.items():
        lines.append(f"| {status.value} | {meaning} | {TO_TYPE[status]} |")
        if status is JobStatus.RUNNING:
            lines.append(f"| {status.value}, and its driver is `gone` | {DRIVER_GONE} | {TO_TYPE_DRIVER_GONE} |")
    return "\n".join(lines)


def faults() -> str:
    """What `lockgate verify` can find."""
    lines = ["| fault | meaning |", "| --- | --- |"]
    lines += [f"| {fault} | {meaning} |" for fault, meaning in FAULT_MEANING.items()]
    return "\n".join(lines)


def capabilities() -> str:
    """What a store can declare."""
    lines = ["| capability | what a store that declares it promises |", "| --- | --- |"]
    lines += [f"| `{capability.value}` | {meaning} |" for capability, meaning in MEANING.items()]
    return "\n".join(lines)


def events() -> str:
    """What `lockgate_event` hears."""
    lines = ["| event | what it says |", "| --- | --- |"]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in EVENTS.items()]
    return "\n".join(lines)


def store_methods() -> str:
    """Each method of a store, with what it raises."""
    lines = ["| method | what it does | raises |", "| --- | --- | --- |"]
    for name, method in vars(Store).items():
        if not inspect.isfunction(method) or name.startswith("_"):
            continue
        told, errors = _told_and_raised(method)
        abstract = "" if getattr(method, "__isabstractmethod__", False) else " (has a default)"
        lines.append(f"| `{name}`{abstract} | {_first_sentence(told)} | {errors or 'nothing'} |")
    return "\n".join(lines)


def store_attributes() -> str:
    """What a store says of itself, beside its methods."""
    return _attributes_of(Store)


def protocol_methods() -> str:
    """What the engine asks of a protocol, in the order of a job's life: what must be there, with its arguments."""
    lines = ["| method | what it does | raises |", "| --- | --- | --- |"]
    for name, method in _methods_of(Protocol):
        if name in Protocol.__abstractmethods__:
            told, errors = _told_and_raised(method)
            arguments = _signature(method)
            lines.append(f"| `{name}{arguments}` | {_first_sentence(told)} | {errors or 'what the store raises'} |")
    return "\n".join(lines)


def protocol_defaults() -> str:
    """The methods that a protocol may leave as they are."""
    lines = ["| method | what it does | raises |", "| --- | --- | --- |"]
    for name, method in _methods_of(Protocol):
        if name not in Protocol.__abstractmethods__:
            told, errors = _told_and_raised(method)
            lines.append(f"| `{name}{_signature(method)}` | {_first_sentence(told)} | {errors or 'nothing'} |")
    return "\n".join(lines)


def protocol_says() -> str:
    """What a protocol says of itself, by attributes of its class."""
    return _attributes_of(Protocol)


def _methods_of(kind: type) -> Iterator[tuple[str, Any]]:
    return ((name, each) for name, each in vars(kind).items() if inspect.isfunction(each) and name[0] != "_")


def _signature(method: Any) -> str:
    """The arguments without their types; `self` is left out."""
    signature = inspect.signature(method)
    plain = [each.replace(annotation=each.empty) for name, each in signature.parameters.items() if name != "self"]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


def _told_and_raised(method: Any) -> tuple[str, str]:
    told, _, raised = (inspect.getdoc(method) or "").partition("Raises:\n")
    errors = " ".join(line.strip() for line in raised.splitlines())
    return told, re.sub(r"\b((?:[A-Z][A-Za-z]+(?:, )?)+):", lambda match: _coded(match[1]), errors)


def _attributes_of(kind: type) -> str:
    """The attributes and properties of a class, each with the text that stands below it."""
    lines = ["| name | default | what it says |", "| --- | --- | --- |"]
    (body,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(body, ast.ClassDef)
    for each, after in zip(body.body, [*body.body[1:], None], strict=True):
        default, text = "", None
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            name = each.target.id
            default = f"`{ast.unparse(each.value)}`" if each.value else "none: it must be set"
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                text = inspect.cleandoc(str(after.value.value))
        elif isinstance(each, ast.FunctionDef) and isinstance(vars(kind)[each.name], property):
            name, text = each.name, ast.get_docstring(each)
            default = "none: it must be set" if name in kind.__abstractmethods__ else "see there"  # type: ignore[attr-defined]
        if text:
            lines.append(f"| `{name}` | {default} | {' '.join(text.split())} |")
    return "\n".join(lines)


def guarantees() -> str:
    """What the kit tries of a protocol, and what must be promised for it."""
    lines = ["| guarantee | asked where the attributes promise |", "| --- | --- |"]
    for each in lockgate_testkit.GUARANTEES:
        needs = ", ".join(f"`{name}`" for name in each.needs) or "always"
        lines.append(f"| {each.promise} | {needs} |")
    return "\n".join(lines)


def _first_sentence(text: str | None) -> str:
    paragraph = (text or "").strip().partition("\n\n")[0].replace("\n", " ")
    return paragraph.partition(". ")[0].rstrip(".")


def _coded(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", ")) + ":"


def plugin_names() -> str:
    """What a plugin imports, with the first sentence of each name's own text."""
    lines = ["| name | what it is |", "| --- | --- |"]
    for name in sorted(plugin.__all__):
        value = getattr(plugin, name)
        text = OTHER_NAMES.get(name) or _first_sentence(inspect.getdoc(value))
        lines.append(f"| `{name}` | {text} |")
    return "\n".join(lines)


CORE = Path(lockgate.__file__).parent
PACKAGES = (
    "cli",
    "spark",
    "api",
    "stores",
    "plugins",
    "protocols.direct",
    "protocols.stocator",
    "protocols.emrfs",
    "protocols.in_place",
    "protocols.v1",
    "protocols.v2",
    "protocols.markers",
    "protocols.hive",
    "protocols.file_output",
    "protocols.manifest",
    "protocols.deferred",
    "engine.outside",
    "engine.recovery",
    "engine.inspection",
    "engine.job",
    "engine.renames",
    "engine.manifests",
    "engine.record",
    "engine.run",
    "model",
)
"""From the outside inward."""


def packages_picture() -> str:
    """Which package of the core imports which, from the imports themselves: an arrow that another path of arrows says
    already is left out."""
    missing = _packages_of_the_core() - set(PACKAGES)
    if missing:
        raise SystemExit(f"docs/generate.py: PACKAGES does not say where {', '.join(sorted(missing))} stands")
    imports = {package: _imported_by(package) for package in PACKAGES}

    def reaches(start: str, end: str) -> bool:
        return end in imports[start] or any(reaches(each, end) for each in imports[start])

    lines = ["```mermaid", "flowchart TD"]
    lines += [f'    {package.replace(".", "_")}["{package}"]' for package in PACKAGES]
    for package in PACKAGES:
        for other in sorted(imports[package], key=PACKAGES.index):
            if not any(reaches(each, other) for each in imports[package] - {other}):
                lines.append(f"    {package.replace('.', '_')} --> {other.replace('.', '_')}")
    return "\n".join([*lines, "```"])


def _packages_of_the_core() -> set[str]:
    """Every package of the first level; of the engine and of the protocols, those in them."""
    found = [path for pattern in ("*", "engine/*", "protocols/*") for path in CORE.glob(f"{pattern}/__init__.py")]
    names = {".".join(path.parent.relative_to(CORE).parts) for path in found}
    return names - {"engine", "protocols"}


def _imported_by(package: str) -> set[str]:
    found: set[str] = set()
    for source in _directory(package).rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {each for each in PACKAGES if node.module.startswith(f"lockgate.{each}")}
    return found - {package}


def _directory(package: str) -> Path:
    return CORE.joinpath(*package.split("."))


def modules() -> str:
    """Every module of the engine and of the protocols, with its first line."""
    parts = []
    for package in PACKAGES:
        if not package.startswith(("engine", "protocols")):
            continue
        directory = _directory(package)
        lines = [f"### lockgate.{package}", "", _whole_first_sentence(directory / "__init__.py"), ""]
        lines += ["| module | what is in it |", "| --- | --- |"]
        for source in sorted(directory.glob("*.py")):
            if source.stem != "__init__":
                lines.append(f"| `{source.stem}` | {_whole_first_sentence(source)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _whole_first_sentence(source: Path) -> str:
    text = " ".join((ast.get_docstring(ast.parse(source.read_text())) or "").split("\n\n")[0].split())
    return re.split(r"(?<=[.!?]) (?=[A-Z`])", text)[0]


def protocol_attributes() -> str:
    """What a protocol promises, and which of the built-in ones does."""
    protocols = PluginRegistry().protocols()
    lines = ["| attribute | what it says | " + " | ".join(protocols) + " |"]
    lines.append("| --- | --- |" + " --- |" * len(protocols))
    for name, meaning in plugin.ATTRIBUTE_MEANING.items():
        holds = " | ".join("yes" if getattr(each.attributes, name) else "no" for each in protocols.values())
        lines.append(f"| `{name}` | {meaning} | {holds} |")
    return "\n".join(lines)


OTHER_NAMES = {
    "ATTRIBUTE_MEANING": "what each attribute of a protocol says, in words",
    "EVENTS": "every event by name, with what it says",
    "LockgateError": "the root of all errors: `what` happened, `where`, and the `next_step`",
    "MEANING": "what each capability promises, in words",
    "WEAKENING": "the capabilities that are a warning",
    "Progress": "called by a store with how many more of a batch are done",
    "RenameOutcome": "`Renamed`, `NotRenamed` or `Unknown`",
    "hookimpl": "marks a function as the implementation of a hook",
}

PARTS: dict[str, Callable[[], str]] = {
    part.__name__.replace("_", "-"): part
    for part in (
        options,
        hadoop_without_effect,
        writer_options,
        formats,
        commands,
        documents,
        phases,
        phases_picture,
        paths,
        statuses,
        faults,
        capabilities,
        events,
        store_methods,
        store_attributes,
        plugin_names,
        packages_picture,
        modules,
        protocol_attributes,
        protocol_methods,
        protocol_defaults,
        protocol_says,
        guarantees,
    )
}
_PART = re.compile(r"(<!-- generated: ([a-z-]+) -->\n)(?:(?!<!-- generated).)*?(<!-- end -->)", re.DOTALL)


def current(text: str) -> str:
    """A page with each generated part as the code has it now.

    Raises:
        KeyError: a page asks for a part that there is not.
    """
    return _PART.sub(lambda match: f"{match[1]}\n{PARTS[match[2]]()}\n\n{match[3]}", text)


def main() -> int:
    """Write the pages, or check them."""
    stale = []
    for page in sorted(DOCS.glob("*.md")):
        before = page.read_text()
        after = current(before)
        if after != before:
            stale.append(page.name)
            if "--check" not in sys.argv:
                page.write_text(after)
    if stale:
        print("written:" if "--check" not in sys.argv else "not current:", ", ".join(stale))
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
