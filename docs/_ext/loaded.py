"""A process with the package loaded, of which every snippet is a fork.

Loading the package takes longer than most snippets. The process listens on a socket; a client
hands over what it was called with, and its standard streams, and waits for the exit status.
"""

import array
import atexit
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from fractions import Fraction
from pathlib import Path

ROOMS = [
    "cli",
    "demo",
    "run",
    "audit",
    "evaluate",
    "report",
    "mechanisms.topdown",
    "mechanisms.phsafe",
]

#: A client, quick to start.
CLIENT = """#!{python} -IS
import array, json, os, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect({address!r})
asked = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
streams = array.array("i", [0, 1, 2])
line.sendmsg([len(asked).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
line.sendall(asked)
sys.exit(int(line.recv(16) or b"1"))
"""


def start(folder: Path) -> Path:
    """Start the process, and return a folder with its clients `discreet` and `snippet`."""
    address, programs = folder / "line", folder / "bin"
    programs.mkdir()
    for name in ("discreet", "snippet"):
        client = programs / name
        client.write_text(CLIENT.format(python=sys.executable, address=str(address)))
        client.chmod(0o755)
    environment = {**os.environ, "DISCREET_OWN_PROCESS": "1", "PYTHONUTF8": "1"}
    process = subprocess.Popen([sys.executable, __file__, str(address)], env=environment)
    atexit.register(process.kill)
    while not address.exists():
        if process.poll() is not None:
            raise RuntimeError("the process that runs the snippets has ended")
        time.sleep(0.05)
    return programs


def load() -> None:
    """Load what snippets use; a first draw makes the compiler load what it needs."""
    for room in ROOMS:
        importlib.import_module(f"discreet.{room}")
    noise = importlib.import_module("discreet.noise")
    noise.discrete_gaussian(noise.trial(1), "load", 0, Fraction(4), 1)


def serve(address: str) -> None:
    """Answer every client in a fork of this process."""
    parent = os.getppid()
    load()
    line = socket.socket(socket.AF_UNIX)
    line.bind(f"{address}.new")
    line.listen()
    line.settimeout(5)
    Path(f"{address}.new").rename(address)  # who sees it may call
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while os.getppid() == parent:
        try:
            client, _ = line.accept()
        except TimeoutError:
            continue
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            line.close()
            status = answer(client)
            client.sendall(str(status).encode())
            os._exit(0)
        client.close()


def answer(client: socket.socket) -> int:
    """Do what a client asks for, on its streams, and return the exit status."""
    streams = array.array("i")
    size, held, _, _ = client.recvmsg(4, socket.CMSG_SPACE(12))
    streams.frombytes(held[0][2])
    asked = b""
    while len(asked) < int.from_bytes(size, "big"):
        asked += client.recv(1 << 16)
    arguments, folder, environment = json.loads(asked)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    return run(arguments)


def run(arguments: list[str]) -> int:
    """Run `discreet` with its arguments, or a snippet of Python, as a program would."""
    sys.argv, sys.path[0] = arguments, ""
    try:
        if Path(arguments[0]).name == "snippet":
            exec(compile(arguments[1], "<snippet>", "exec"), {"__name__": "__main__"})
        else:
            from discreet.cli import main

            main()
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    serve(sys.argv[1])
