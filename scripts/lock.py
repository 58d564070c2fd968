"""Renew the lock files in requirements/ with the newest versions, and print what changed.

    python scripts/lock.py build/uv/bin/uv

A lock holds for every supported Python and platform, with the hashes of all files of each
version. The user's lock takes its versions from the developers', so that one environment can be
both.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "requirements"

#: What each lock is made from; a later one may refer to an earlier one.
LOCKS = {
    "dev.txt": ["pyproject.toml", "--extra", "dev", "--group", "build"],
    "user.txt": ["pyproject.toml", "--group", "build", "--constraint", "requirements/dev.txt"],
    "uv.txt": ["--group", "lock"],
}

_ENTRY = re.compile(r"^([\w.-]+)==([^\s;\\]+)(?: ; ([^\\\n]+?))?(?= \\?$|$)", re.MULTILINE)


def versions(lock: str) -> dict[tuple[str, str], str]:
    """Return the version of each package of a lock, by name and environment marker."""
    return {(name, marker): version for name, version, marker in _ENTRY.findall(lock)}


def changes(before: str, after: str) -> list[str]:
    """Return a line for each package that was added, removed or has another version."""
    old, new = versions(before), versions(after)
    lines = []
    for name, marker in sorted(old.keys() | new.keys()):
        was, now = old.get((name, marker)), new.get((name, marker))
        if was != now:
            where = f" ({marker})" if marker else ""
            lines.append(f"{name}{where}: {was or 'none'} -> {now or 'none'}")
    return lines


def resolve(uv: str, sources: list[str]) -> str:
    """Return a lock of the newest versions that satisfy the sources."""
    command = [uv, "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"]
    command += ["--generate-hashes", "--no-annotate", "--custom-compile-command", "make update"]
    done = subprocess.run(
        [*command, *sources], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"uv found no versions for: {' '.join(sources)}. Its reasons are above.")
    return done.stdout


def main(uv: str) -> None:
    """Renew every lock."""
    FOLDER.mkdir(exist_ok=True)
    for name, sources in LOCKS.items():
        path = FOLDER / name
        before = path.read_text() if path.exists() else ""
        after = resolve(uv, sources)
        path.write_text(after)
        print(f"{path.relative_to(ROOT)}:")
        for line in changes(before, after) or ["no version changed"]:
            print(f"  {line}")


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()))
