"""Starts programs of this project from a process that has imported TensorFlow once: it forks them.

A program that is started so runs as it does from a shell: the same script under the name
``__main__``, with arguments, environment, directory and output of its own, and its own exit status,
whether it returns, raises, or is killed by a signal. What it saves is some three seconds of
imports.

Started as a program, this module is the process that forks.
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import failpoints
import setproctitle

#: What most programs import, among them what takes long. None of it may start a thread.
_PRELOADED = (
    "relaax.client.gymnasium_runner", "relaax.server.actor.main",
    "relaax.server.export.main", "relaax.launcher.main", "relaax.server.learner.main",
    "relaax.parameters.process.main", "relaax.replay.process.main",
    "relaax.server.rlx_server.wiring",
)  # fmt: skip

#: The libraries of numbers read these when they are imported, which a program can not do again.
_SINGLE_THREADED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

#: The beginnings of the names of what is read when a program starts. (Not LD_LIBRARY_PATH: OpenCV
#: sets it when it is imported, also in a program that runs.)
_OF_A_START = ("PYTHON", "LD_PRELOAD", "MALLOC_", "TF_", "XLA_", *_SINGLE_THREADED)

#: What runs a program as another machine: see networks.
_IN_NAMESPACE = ["netns", "exec"]

# For all tests and what they start: TensorFlow says nothing but errors, and numpy has one thread.
for _name, _value in {"TF_CPP_MIN_LOG_LEVEL": "3", **dict.fromkeys(_SINGLE_THREADED, "1")}.items():
    os.environ.setdefault(_name, _value)

_MOST_BYTES = 2**18

_CLONE_NEWNET = 0x40000000


class ForkedProgram:
    """A program that was forked, with what tests use of ``subprocess.Popen``."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self._status_pipe = status
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, negative for a signal; None while the program runs."""
        return self._returned_within(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status; subprocess.TimeoutExpired if it takes longer."""
        status = self._returned_within(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the program has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL, unless the program has ended."""
        self.send_signal(signal.SIGKILL)

    def _returned_within(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status_pipe], [], [], timeout)[0]:
            with os.fdopen(self._status_pipe) as pipe:
                self.returncode = os.waitstatus_to_exitcode(int(pipe.read()))
        return self.returncode


class Zygote:
    """The process that forks; it ends when this one does."""

    def __init__(self) -> None:
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._popen = subprocess.Popen(
                [sys.executable, __file__, str(other.fileno())],
                env={**_FIRST_ENVIRONMENT, "PYTHONUNBUFFERED": "1"},
                pass_fds=[other.fileno()], cwd="/",
            )  # fmt: skip

    def start(
        self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], output: int
    ) -> ForkedProgram:
        """Start a program of Python: a script with its arguments, or ``python -m MODULE``."""
        order = {"arguments": list(arguments), "cwd": str(cwd), "environment": dict(environment)}
        ours, theirs = os.pipe()
        socket.send_fds(self._socket, [json.dumps(order).encode()], [output, theirs])
        os.close(theirs)
        answer = self._socket.recv(_MOST_BYTES)
        if not answer:
            raise RuntimeError(f"the zygote has ended with {self._popen.wait()}")
        return ForkedProgram(int(answer), ours)


@cache
def zygote() -> Zygote:
    """Return the one of this process, which is started when it is first needed."""
    return Zygote()


def can_fork(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Return whether a fork is the same as a start: where nothing was set that a start reads."""
    _, arguments = _divided(arguments)
    script = Path(arguments[0])
    is_ours = script.parent == Path(sys.executable).parent and script.name.startswith("relaax-")
    is_module = list(arguments[:2]) == [sys.executable, "-m"] and arguments[2].startswith("relaax.")
    return (is_ours or is_module) and _read_at_start(environment) == _AT_FIRST


def _divided(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the network namespace that a program is to run in, and its own arguments."""
    if list(arguments[1:3]) == _IN_NAMESPACE and Path(arguments[0]).name == "ip":
        return arguments[3], list(arguments[4:])
    return None, list(arguments)


def _enter(namespace: str) -> None:
    """Be in a network namespace that ``ip netns`` has made, as ``ip netns exec`` is."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{namespace}") as file:
        if libc.setns(file.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {namespace}")


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what Python, the loader and TensorFlow read once, when a program starts."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_OF_A_START) and name != "PYTHONUNBUFFERED"
    }


#: Of the tests themselves, before one of them changes it for what it starts.
_FIRST_ENVIRONMENT = dict(os.environ)
_AT_FIRST = _read_at_start(_FIRST_ENVIRONMENT)


def _main() -> None:
    importlib.import_module("relaax.learning.tensorflow_runtime_tf").import_tensorflow()
    for module in _PRELOADED:
        importlib.import_module(module)
    setproctitle.getproctitle()  # it looks for its place while the environment is the first one
    gc.freeze()  # or each fork would copy, and at its end free, all that was imported
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, f"{threads} threads: what is forked would have one of them alone"
    _serve(socket.socket(fileno=int(sys.argv[1])))()


def _serve(orders: socket.socket) -> Callable[[], object]:
    """Fork until nobody gives orders any more; in what is forked, return what it is to run."""
    statuses: dict[int, int] = {}  # the pipe for its exit status, by process
    ended, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    while True:
        ready, _, _ = select.select([orders, ended], [], [])
        if ended in ready:
            os.read(ended, 4096)
            _pass_on(statuses)
        if orders not in ready:
            continue
        message, descriptors, _, _ = socket.recv_fds(orders, _MOST_BYTES, 2)
        if not message:
            os._exit(0)
        output, status = descriptors
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for descriptor in (orders.detach(), ended, wakes, status, *statuses.values()):
                os.close(descriptor)
            return _program(json.loads(message), output)
        statuses[pid] = status
        os.close(output)
        orders.send(str(pid).encode())


def _pass_on(statuses: dict[int, int]) -> None:
    """Write the status of each program that has ended into its pipe."""
    for pid in list(statuses):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with os.fdopen(statuses.pop(pid), "w") as pipe:
                pipe.write(str(status))


def _program(order: dict[str, Any], output: int) -> Callable[[], object]:
    """Be the process of a program that was just started; return what runs it."""
    os.chdir(order["cwd"])
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.close(output)
    os.environ.clear()
    os.environ.update(order["environment"])
    if failpoints.VARIABLE in os.environ:
        failpoints.install()
    namespace, (program, *arguments) = _divided(order["arguments"])
    if namespace is not None:
        _enter(namespace)
    if program != sys.executable:
        sys.argv, sys.path[0] = [program, *arguments], str(Path(program).parent)
        return partial(runpy.run_path, program, run_name="__main__")
    _, module, *arguments = arguments
    sys.modules.pop(module, None)  # as it is when Python begins
    sys.argv, sys.path[0] = [module, *arguments], order["cwd"]
    return partial(runpy.run_module, module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
