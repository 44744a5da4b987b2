"""People who change what readers see, by programs that know nothing of Lockgate: they edit files in place, put others
in their place, and delete them.

Who edits in place keeps a file's metadata, and on a bucket that is all that carries a job's mark (Amazon S3 user guide,
"Editing object metadata": a copy of an object onto itself keeps it unless told otherwise; `s3fs`, `rclone` and file
systems over S3 write it again). Nothing goes wrong with them: they are what happens to others. They touch what they can
see, never what is below `_lockgate`.
"""

from __future__ import annotations

import re

from lockgate.model.layout import directory_number_in, is_reserved
from lockgate.model.urls import parent_of

from simworld.disk import NO_TEXT, Disk, Stored
from simworld.judges import Before, Edited, Written, root_of
from simworld.scenario import Person
from simworld.store import Ether


def act(ether: Ether, actor: str, person: Person, appeared: str, *, lengths_tell: bool) -> str:
    """Do it, as one act; what was done, for the trace. `appeared` is the file that has just appeared; `lengths_tell`:
    files are known by their lengths alone, so that a change of the same length is none that anybody could find."""
    disk = ether.disk
    if person.does == "add":
        return _add(ether, actor, person)
    if person.does in ("make inside", "hide inside"):
        return _make_inside(ether, actor, person)
    path = appeared if appeared in disk.files else _choose(disk, person)
    if not path:
        return ""
    old = disk.files[path]
    does = person.does
    if does == "write alike" and (lengths_tell or not _is_seen_where_alike(disk, old)):
        does = "replace"
    if does == "delete":
        disk.remove(actor, path)
    else:
        disk.put(actor, path, _new(disk, actor, path, old, does, lengths_tell=lengths_tell))
    ether.trace.append((ether.loop.now, actor, does, path, ""))
    return f"{does} {path}"


def _add(ether: Ether, actor: str, person: Person) -> str:
    """Put a new file into a directory of the table, by its path: where it is gone, most stores make it anew."""
    disk = ether.disk
    seen = {parent_of(path) for path in disk.files if not is_reserved(path)} | {"p=1", "p=2"}
    chosen = sorted(seen - {""})
    path = f"{chosen[int(person.choice * len(chosen))]}/rival-{actor}"
    above = [path[: at.start()] for at in re.finditer("/", path)]
    if path in disk.files or any(directory in disk.files for directory in above):
        return ""
    if disk.real_directories and not ether.profile.remote and not disk.has_parent(path):
        return ""
    for directory in above if disk.real_directories else ():
        disk.directories.setdefault(directory, disk.clock())
    disk.put(actor, path, disk.make(f"{actor}|{path}".encode(), Edited(actor, path, None, False)))
    ether.trace.append((ether.loop.now, actor, "add", path, ""))
    return f"add {path}"


def _make_inside(ether: Ether, actor: str, person: Person) -> str:
    """Make a file in a directory that is open, and that has been set aside meanwhile: as a local disk lets one. (Not
    once it is being deleted: what is made between the last look and that is lost, as the docs say.) Or one whose name
    is no text, so that no listing shows what is there."""
    disk = ether.disk
    places = sorted(path for path in disk.directories if directory_number_in(path) is not None and "-whole/" in path)
    if not places:
        return ""
    name = f"rival-{actor}" if person.does == "make inside" else f"{NO_TEXT}{actor}"
    path = f"{places[int(person.choice * len(places))]}/{name}"
    disk.put(actor, path, disk.make(f"{actor}|{path}".encode(), Edited(actor, path, None, False)))
    ether.trace.append((ether.loop.now, actor, person.does, path, ""))
    return f"{person.does} {path}"


def _choose(disk: Disk, person: Person) -> str:
    seen = [path for path in sorted(disk.files) if not is_reserved(path)]
    kind = Written if person.of_jobs else Before
    chosen = [path for path in seen if isinstance(root_of(disk.files[path].label), kind)] or seen
    return chosen[int(person.choice * len(chosen))] if chosen else ""


def _is_seen_where_alike(disk: Disk, old: Stored) -> bool:
    """Whether a file of the same bytes can be told from the one in whose place it is put: by its serial number, or by
    the mark that it lacks."""
    return disk.identity_kind == "serial" or (disk.identity_kind == "content" and bool(old.proof))


def _new(disk: Disk, actor: str, path: str, old: Stored, does: str, *, lengths_tell: bool) -> Stored:
    keeps_mark = does in ("edit", "rewrite") and not (isinstance(old.label, Edited) and not old.label.keeps_mark)
    label = Edited(actor, path, root_of(old.label), keeps_mark)
    proof = old.proof if label.keeps_mark else ""
    if does == "write alike":
        return disk.make(old.content, label, proof)
    content = f"{actor}|{does}|{path}".encode()
    if does == "rewrite" and not lengths_tell:
        content = content[: len(old.content)].ljust(len(old.content), b".")
    new = disk.make(content, label, proof)
    while new.identity == old.identity or (lengths_tell and len(new.content) == len(old.content)):
        content += b"+"
        new = disk.make(content, label, proof)
    return new
