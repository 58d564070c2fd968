"""Write files so that nobody ever sees half of one, and read YAML strictly."""

from __future__ import annotations

import contextlib
import fcntl
import grp
import hashlib
import json
import os
import pwd
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from discreet.errors import BadInput, DiskFull, NewerFormat, UnreadableFile, no_room

FORMAT_VERSION = 1

#: No file of ours nests deeper than this.
DEEPEST = 50

#: What is wrong with a file that this user has no right to read, and what to do about it.
NOT_ALLOWED = ("this user may not read it", "Ask its owner for the permission.")

#: How the names of temporary folders end, after letters by chance: nobody else's do.
SCRATCH = ".discreet-part"


def private_folder(path: Path) -> Path:
    """Create `path` readable by its owner only, and return it."""
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o700)
    return path


@contextlib.contextmanager
def atomic_file(path: Path, mode: int = 0o644) -> Iterator[Path]:
    """Yield a temporary path beside `path` that replaces it on success only."""
    check_replaceable(path)
    temporary = path.parent / f".{path.name}.{os.getpid()}.part"
    try:
        with naming_full_disk(path.name):
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            temporary.chmod(mode)
            _sync(temporary)
            temporary.replace(path)
            _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def check_replaceable(path: Path) -> None:
    """Refuse to write where anything but a regular file stands: it would be gone after that.

    So would a pipe or a device be, for all who use it, and a link instead of what it names.
    """
    try:
        mode = path.lstat().st_mode
    except OSError:  # nothing there; or writing will say what is wrong with the path
        return
    if stat.S_ISLNK(mode):
        raise BadInput(
            f"{path.name} is a symbolic link, which would be replaced by a file. Give the path "
            f"of a regular file, or put one in its place."
        )
    if not stat.S_ISREG(mode):
        raise BadInput(f"{path.name} is not a regular file. Give the path of a regular file.")


@contextlib.contextmanager
def naming_full_disk(what: str) -> Iterator[None]:
    """Say what could not be written if there is no room for it."""
    try:
        yield
    except Exception as error:
        if no_room(error):
            raise DiskFull(what) from None
        raise


def create_file(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a new file that appears whole or not at all; raise FileExistsError if there is one.

    Unlike `atomic_file` it never replaces anything, and a killed process leaves nothing: the
    file has no name until it is complete. Where the system has no such files, a killed process
    leaves a hidden one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming_full_disk(path.name), _unnamed(path) as (handle, name):
        os.fchmod(handle, mode)
        with open(handle, "wb", closefd=False) as file:
            file.write(content)
        os.fsync(handle)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # Giving the folder makes Python follow the link that stands for an unnamed file.
            os.link(name, path.name, dst_dir_fd=folder, follow_symlinks=True)
            os.fsync(folder)
        finally:
            os.close(folder)


@contextlib.contextmanager
def _unnamed(path: Path) -> Iterator[tuple[int, str]]:
    """Yield a new file in the folder of `path`, opened, and what it can be linked by."""
    named = path.parent / f".{path.name}.{os.getpid()}.part"
    handle = None
    with contextlib.suppress(OSError, AttributeError):
        handle = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, 0o600)
    try:
        if handle is None:
            handle = os.open(named, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            yield handle, str(named)
        else:
            yield handle, f"/proc/self/fd/{handle}"
    finally:
        if handle is not None:
            os.close(handle)
        named.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: Path, mode: int = 0o700, tag: str | None = None) -> Iterator[Path]:
    """Yield a new folder that becomes `path` on success and vanishes on failure.

    `path` must not exist or must be empty: results are never merged with what an
    earlier run left behind. A killed process leaves its temporary folder: the next one
    for the same `path` removes it, or with a `tag` the next one with the same tag. Files
    and folders inside get the rights of `mode`, whatever the umask says.
    """
    if path.is_symlink():
        raise BadInput(f"{path.name} is a symbolic link. Name the folder that it stands for.")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise BadInput(f"{path.name} exists and is not empty. Choose another folder or delete it.")
    made = scratch_folder(path) if tag is None else _tagged_folder(path, tag)
    with naming_full_disk(path.name), made as temporary:
        yield temporary
        for inside in temporary.rglob("*"):
            inside.chmod(mode if inside.is_dir() else mode & 0o666)
        temporary.chmod(mode)
        sync_folder(temporary)
        if path.exists():
            path.rmdir()
        temporary.replace(path)
        _sync(path.parent)


@contextlib.contextmanager
def _tagged_folder(path: Path, tag: str) -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{tag}.part"
    remove_folder(temporary)
    temporary.mkdir(mode=0o700)
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def scratch_folder(path: Path) -> Iterator[Path]:
    """Yield a new private folder beside `path` that is removed at the end, whatever happens.

    First those are removed that killed processes left for the same `path`. A living process
    holds a lock on its own, which the system takes back when it ends in any way. What is made
    in it is to become `path`, which must be free for that.
    """
    if path.is_symlink() or not path.is_dir():
        check_replaceable(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _clear_scratch(path)
    temporary, handle = _locked_scratch(path)
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(handle)


def _locked_scratch(path: Path) -> tuple[Path, int]:
    """Return a new scratch folder, and the handle whose closing ends its lock."""
    while True:
        prefix = f".{path.name}."
        made = Path(tempfile.mkdtemp(prefix=prefix, suffix=SCRATCH, dir=path.parent))
        # Until it is locked, another process may take it for a left one.
        with contextlib.suppress(FileNotFoundError):
            handle = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
            # Where folders cannot be locked, nobody can lock this one in order to remove it.
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_at(made, handle):
                return made, handle
            os.close(handle)


def _clear_scratch(path: Path) -> None:
    """Remove the scratch folders of `path` that no living process holds."""
    form = re.compile(re.escape(f".{path.name}.") + "[a-z0-9_]{8}" + re.escape(SCRATCH))
    for left in [entry for entry in path.parent.iterdir() if form.fullmatch(entry.name)]:
        with contextlib.suppress(OSError):  # of others, or in use
            handle = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(left, handle):
                    shutil.rmtree(left)
            finally:
                os.close(handle)


def _is_at(path: Path, handle: int) -> bool:
    """Say whether what was opened is still what stands at `path`."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def others_may_write(path: Path) -> bool:
    """Return whether anybody but root and this user may change a file, or what is in a folder.

    A group counts as others unless this user is alone in it: on many systems every user has
    such a group, and files are made writable for it.
    """
    found = path.stat()
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & stat.S_IWOTH:
        return True
    return bool(found.st_mode & stat.S_IWGRP) and (_has_acl(path) or not _is_alone(found.st_gid))


def _has_acl(path: Path) -> bool:
    """Return whether there is a list of rights; its sum is then what the group's bits show."""
    with contextlib.suppress(OSError, AttributeError):  # no such lists here
        return "system.posix_acl_access" in os.listxattr(path)
    return False


def _is_alone(group: int) -> bool:
    """Return whether a group bears the name of this user, and has no other member."""
    try:
        user, found = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    members = {one.pw_name for one in pwd.getpwall() if one.pw_gid == group}
    return found.gr_name == user and {*found.gr_mem, *members} <= {user}


def remove_folder(path: Path) -> None:
    """Remove a folder and all it holds, if it is there; failing to is an error."""
    if path.is_dir():
        shutil.rmtree(path)


def folder_hash(folder: Path) -> str:
    """Return one hash over the names and contents of all files of a folder."""
    digest = hashlib.sha256()
    for path in files_below(folder):
        name = os.fsencode(path.relative_to(folder))
        # No name holds a zero byte, so no other folder gives the same bytes.
        digest.update(name + b"\0" + sha256_file(path).encode() + b"\n")
    return digest.hexdigest()


def files_below(folder: Path) -> list[Path]:
    """Return all files in a folder and in folders inside it, in the order of their names.

    A link to a file counts as that file. A link to a folder is refused: what lies behind it
    could change, or lead back here. So is what is neither file nor folder, or cannot be listed.
    """
    found: list[Path] = []
    try:
        entries = sorted(folder.iterdir())
    except PermissionError:
        raise UnreadableFile(f"{folder.name}/", *NOT_ALLOWED) from None
    except (FileNotFoundError, NotADirectoryError):
        raise UnreadableFile(str(folder), "there is no such folder", "Check the path.") from None
    for entry in entries:
        if entry.is_symlink() and not entry.is_file():
            raise UnreadableFile(
                entry.name, "is a link, and not to a file", "Put the folder itself in its place."
            )
        if entry.is_dir():
            found += files_below(entry)
        elif entry.is_file():
            found.append(entry)
        else:
            raise UnreadableFile(entry.name, "is neither a file nor a folder", "Remove it.")
    return sorted(found)


def sync_folder(folder: Path) -> None:
    """Force every file and folder below `folder` to the disk."""
    for path in [folder, *folder.rglob("*")]:
        _sync(path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that only one process can have, or say that another has it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        free = False
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A run that was refused takes its lock away, and the next one makes another.
            free = _is_at(path, handle)
        if not free:
            raise BadInput(f"{path.parent.name} is in use by another run. Wait for it, or stop it.")
        yield
    finally:
        os.close(handle)


def write_text(path: Path, text: str, mode: int = 0o644) -> None:
    """Write `text` to `path` in one step; until then nobody else can read it."""
    with atomic_file(path, mode) as temporary:
        temporary.touch(0o600)
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any, mode: int = 0o644) -> None:
    """Write `value` as canonical JSON (see `json_text`)."""
    write_text(path, json_text(value), mode)


def json_text(value: Any) -> str:
    """Return `value` as canonical JSON: sorted keys, two spaces, one final newline."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def write_yaml(path: Path, value: Any, mode: int = 0o644) -> None:
    """Write `value` as block-style YAML in the order given."""
    text = yaml.dump(value, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True)
    write_text(path, text, mode)


# The loader and dumper in C, twenty times faster, wherever PyYAML was built with them.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _PlainDumper(_Dumper):  # type: ignore[misc]
    """Dumper that writes a value again where YAML would write an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class _NotPlain(yaml.YAMLError):
    """YAML that we refuse, with the mark of its line where PyYAML's own errors have it."""

    def __init__(self, problem_mark: Any) -> None:
        # Any: the parsers in C and in Python have marks of different types.
        super().__init__()
        self.problem_mark = problem_mark


class _StrictLoader(_Loader):  # type: ignore[misc]
    """Safe loader that refuses a key given twice: YAML would keep the last silently."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        if len(mapping) != len(node.value):
            raise _NotPlain(node.start_mark)
        return mapping


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file, or raise a `BadInput` naming file and line."""
    text = _read_text(path)
    try:
        _check_shape(text)
        return yaml.load(text, Loader=_StrictLoader)
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        mark = getattr(error, "problem_mark", None)
        row = None if mark is None else mark.line + 1
        raise UnreadableFile(
            path.name, "is not plain YAML (no repeated keys, no aliases)", "Mend that line.", row
        ) from None


def _read_text(path: Path) -> str:
    check_path(path)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        rule, remedy = "is not UTF-8 text", "Write it as UTF-8."
    except FileNotFoundError:
        rule, remedy = "is missing", "Check the path."
    except IsADirectoryError:
        rule, remedy = "is a folder", "Name a file."
    except PermissionError:
        rule, remedy = NOT_ALLOWED
    except OSError as error:
        rule, remedy = f"cannot be read ({error.strerror})", "Check the path and the disk."
    raise UnreadableFile(path.name, rule, remedy)


def check_path(path: Path | str) -> None:
    """Refuse a path that no system can open; it would fail later, in words nobody understands."""
    if "\0" in str(path):
        shown = str(path).replace("\0", "?")
        raise UnreadableFile(shown, "has a character (NUL) that no file can have", "Remove it.")


def check_utf8(path: Path) -> None:
    """Refuse a path that is not UTF-8, which the engine cannot write down."""
    try:
        os.path.abspath(path).encode()  # noqa: PTH100  (not resolved: links keep their names)
    except UnicodeEncodeError:
        raise UnreadableFile(
            ascii(path.name), "has a path that is not UTF-8", "Rename the file or its folders."
        ) from None


def _check_shape(text: str) -> None:
    """Refuse aliases and deep nesting before anything is built from them.

    A few lines of aliases can stand for gigabytes, and nesting without end exhausts the
    stack of the parser in C, which ends the process.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if isinstance(event, yaml.AliasEvent) or depth > DEEPEST:
            raise _NotPlain(event.start_mark)


def check_format(content: Any, file: str) -> dict[str, Any]:
    """Return `content` as a mapping after checking its `format_version`."""
    if not isinstance(content, dict):
        raise UnreadableFile(file, "must hold a mapping of keys", "Compare with the documentation.")
    found = content.get("format_version")
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= FORMAT_VERSION:
        raise NewerFormat(file, found, FORMAT_VERSION)
    return content


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes as hexadecimal text."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
