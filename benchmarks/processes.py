"""Processes that end with the process that started them, however that one ends."""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any

STOP_DEADLINE_S = 30.0

#: prctl(2): which signal a process gets when its parent ends.
_PR_SET_PDEATHSIG = 1
_LIBRARY = ctypes.CDLL(None)


def end_on_sigterm() -> None:
    """Let SIGTERM end this process like an exception: children and temporary files go with it."""

    def leave(number: int, frame: Any) -> None:
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)


def allow_many_files() -> None:
    """Allow as many open files as the system permits, to this process and its children."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # macOS reports a limit that it does not accept
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def die_with_parent(parent: int, number: int = signal.SIGKILL) -> None:
    """Ask for a signal when ``parent``, which is this process' own, ends; only Linux has it."""
    if hasattr(_LIBRARY, "prctl"):
        _LIBRARY.prctl(_PR_SET_PDEATHSIG, int(number))
    if os.getppid() != parent:
        os._exit(1)


@contextlib.contextmanager
def running(command: list[Any], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program of this project until the end of the block."""
    process = subprocess.Popen(  # noqa: S603 - a program of our own
        command,
        preexec_fn=partial(  # noqa: PLW1509 - benchmarks have no other thread
            die_with_parent, os.getpid(), signal.SIGTERM
        ),
        **options,
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def start_child(context: BaseContext, target: Callable[..., None], *arguments: Any) -> BaseProcess:
    """Start ``target`` in a process of its own."""
    process: BaseProcess = context.Process(  # type: ignore[attr-defined]
        target=_run_child, args=(os.getpid(), target, arguments), daemon=True
    )
    process.start()
    return process


def kill(children: list[BaseProcess]) -> None:
    """Kill all ``children``, and then wait until they have ended."""
    for child in children:
        child.kill()
    for child in children:
        child.join()


def _run_child(parent: int, target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    die_with_parent(parent)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its children
    target(*arguments)
