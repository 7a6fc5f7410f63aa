"""The processes of a Procfile on a Ray cluster: each is run by an actor, in a placement group."""

import importlib
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any

from relaax.address import Address
from relaax.errors import ConfigurationError
from relaax.launcher import runner
from relaax.launcher.described import Described, Placement, told
from relaax.launcher.engines.hosted import Hosted
from relaax.launcher.engines.hosted_program import Run
from relaax.launcher.ports import free_port
from relaax.launcher.runner import GivenUp, MachineIsGone

#: How long something is waited for before it is looked whether it still should.
_LOOK_S = 0.5

#: After this time the reason of a wait is said.
_PATIENCE_S = 5.0

#: How long the cluster may take to answer.
_CONNECT_S = 10.0

#: How many calls an actor takes at a time: for output, for signals, and one more.
_CALLS = 4

_STRATEGIES = {Placement.SPREAD: "SPREAD", Placement.PACK: "PACK"}


@contextmanager
def on_ray(
    processes: Sequence[Described], address: str, placement: Placement, variables: Mapping[str, str]
) -> Iterator["RayCluster"]:
    """Yield the places of processes on a cluster; see ``RayCluster``."""
    with (
        # Ray prints the log of its own processes, hundreds of lines when a machine is gone. The
        # printer has the real output, since before.
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        closing(RayCluster(processes, address, placement, variables)) as cluster,
    ):
        cluster.settle(lambda text: print(text, file=sys.stderr, flush=True))
        yield cluster


class RayHost(Hosted):
    """The class of a Ray actor on the machine of a process."""

    def __init__(self) -> None:
        super().__init__(detached=True)

    def address(self) -> str:
        """Return where other machines find this one."""
        return str(_ray("ray.util").get_node_ip_address())

    def free_port(self, preferred: int, taken: Collection[int]) -> int:
        """Return a port of this machine; see ``ports.free_port``."""
        return free_port(self.address(), preferred, taken)


class RayCluster:
    """Has a place for each process, of which some are servers; many threads may call it.

    ``address`` is Ray's; if it is empty, Ray looks for a cluster as it always does, and starts one
    on this machine if there is none. ConfigurationError where that fails. ``close`` gives all back.
    """

    def __init__(
        self,
        processes: Sequence[Described],
        address: str,
        placement: Placement,
        variables: Mapping[str, str],
    ) -> None:
        self._ray = _connect(address)
        self._processes = {process.name: process for process in processes}
        self._bundles = {process.name: place for place, process in enumerate(processes)}
        self._variables = variables
        #: Guards the choice of ports, which takes a while; the other lock is never held for long.
        self._ports = threading.Lock()
        self._lock = threading.Lock()
        self._actors: dict[str, Any] = {}
        self._hosts: dict[str, str] = {}
        #: Where servers listen.
        self._places: dict[str, Address] = {}
        #: The processes with the addresses of now.
        self._told: dict[str, Described] = {}
        #: Called with the name of each process whose addresses have changed.
        self.on_change: Callable[[str], object] = lambda name: None
        bundles = [self._bundle(name) for name in self._processes]
        self._group = _ray("ray.util").placement_group(bundles, strategy=_STRATEGIES[placement])

    def settle(self, say: Callable[[str], object]) -> None:
        """Wait until there is room for all, and find out where they are.

        ``say`` is called when that takes long. ConfigurationError where they cannot be.
        """
        say_at = time.monotonic() + _PATIENCE_S
        while not self._group.wait(_LOOK_S):
            if time.monotonic() > say_at:
                say(self._waiting_for())
                say_at = float("inf")
        try:
            for name in self._processes:
                self._settle(name, lambda: True)
        except MachineIsGone as gone:
            raise ConfigurationError(
                f"--on ray: a machine of the cluster {gone}, before anything was started there"
            ) from gone
        self._tell()

    def host(self, name: str) -> str:
        """Return the address of the machine of a process."""
        return self._hosts[name]

    def start(self, name: str, number: int) -> int:
        """Start a process for the ``number``-th time and return its process group.

        MachineIsGone if its machine is not there any more.
        """
        with self._lock:
            process = self._told[name]
        variables = process.variables(self._variables, number)
        return int(
            self._call(name, "start", Run(process.text, os.getcwd(), variables, runner.GRACE_S))
        )

    def output(self, name: str, goes_on: Callable[[], bool]) -> tuple[list[bytes], int | None]:
        """Return the lines that a process has printed meanwhile, and its status if it has ended.

        MachineIsGone if that is so; GivenUp when ``goes_on`` says no.
        """
        found: tuple[list[bytes], int | None] = self._call(name, "output", goes_on=goes_on)
        return found

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a process, without waiting for it."""
        with self._lock:
            actor = self._actors.get(name)
        if actor is not None:
            actor.signal.remote(number)

    def move(self, name: str, goes_on: Callable[[], bool]) -> None:
        """Find another place for a process whose machine is gone; GivenUp if that is given up.

        Those that were told of the old one have to start again: ``on_change``.
        """
        with self._lock:
            gone = self._actors.pop(name, None)
            self._places.pop(name, None)
        with suppress(Exception):  # it is gone, most likely
            self._ray.kill(gone)
        self._settle(name, goes_on)
        while (changed := self._tell()) is None:  # others move, too, and it has to know where to
            if not goes_on():
                raise GivenUp
            time.sleep(_LOOK_S)
        for other in changed:
            if other != name:
                self.on_change(other)

    def close(self) -> None:
        """End all, and leave the cluster."""
        with suppress(Exception):
            _ray("ray.util").remove_placement_group(self._group)
        self._ray.shutdown()

    def _settle(self, name: str, goes_on: Callable[[], bool]) -> None:
        """Make the actor of a process, and find out its address and, of a server, its port."""
        scheduling = _ray("ray.util.scheduling_strategies").PlacementGroupSchedulingStrategy(
            self._group, placement_group_bundle_index=self._bundles[name]
        )
        bundle = self._bundle(name)
        actor = self._ray.remote(RayHost).options(
            num_cpus=bundle.get("CPU", 0),
            num_gpus=bundle.get("GPU", 0),
            memory=bundle.get("memory"),
            max_concurrency=_CALLS,
            scheduling_strategy=scheduling,
        )
        with self._lock:
            self._actors[name] = actor.remote()
        host = self._call(name, "address", goes_on=goes_on)
        written = self._processes[name].listens
        if written is not None:
            with self._ports:  # one after the other, so that no two are given one port
                taken = self._taken(name, host)
                port = self._call(name, "free_port", written.port, taken, goes_on=goes_on)
                with self._lock:
                    self._places[name] = Address(host, port)
        self._hosts[name] = host

    def _taken(self, name: str, host: str) -> set[int]:
        """Return the ports of a machine that are, or may be, other servers'."""
        with self._lock:
            given = {place.port for place in self._places.values() if place.host == host}
        written = {
            other.listens.port
            for other in self._processes.values()
            if other.listens is not None and other.listens != self._processes[name].listens
        }
        return given | written

    def _tell(self) -> list[str] | None:
        """Update all commands, and return whose has changed; None while others move."""
        with self._lock:
            servers = [each.name for each in self._processes.values() if each.listens is not None]
            if any(name not in self._places for name in servers):
                return None
            now = told(list(self._processes.values()), self._places)
            changed = [name for name in now if self._told.get(name) != now[name]]
            self._told = now
        return changed

    def _call(
        self, name: str, method: str, *arguments: Any, goes_on: Callable[[], bool] = lambda: True
    ) -> Any:
        with self._lock:
            actor = self._actors[name]
        return self._result(getattr(actor, method).remote(*arguments), goes_on)

    def _result(self, reference: Any, goes_on: Callable[[], bool]) -> Any:
        errors = _ray("ray.exceptions")
        try:
            while not self._ray.wait([reference], timeout=_LOOK_S)[0]:
                if not goes_on():
                    raise GivenUp
            return self._ray.get(reference)
        except errors.RayActorError as error:
            if isinstance(error, errors.ActorDiedError) and "creation task" in str(error):
                raise ConfigurationError(
                    f"RELAAX does not start on a machine of the cluster: {_last_line(error)}"
                ) from error
            answers = not isinstance(error, errors.ActorUnavailableError)
            raise MachineIsGone("is gone" if answers else "does not answer") from error

    def _bundle(self, name: str) -> dict[str, float]:
        """Return the needs of a process, in Ray's words."""
        needs = self._processes[name].needs
        found = {"CPU": needs.cpus, "GPU": needs.gpus, "memory": needs.memory_gib * 2**30}
        return {word: amount for word, amount in found.items() if amount} or {"CPU": 0.001}

    def _waiting_for(self) -> str:
        wanted = [self._bundle(name) for name in self._processes]
        there, in_all = self._ray.available_resources(), self._ray.cluster_resources()
        words, too_few = [], []
        for word, unit, name in (("CPU", 1, "cores"), ("GPU", 1, "GPUs"), ("memory", 2**30, "GiB")):
            needed = sum(each.get(word, 0) for each in wanted) / unit
            if needed:
                words.append(f"{needed:g} {name} ({there.get(word, 0) / unit:.3g} free)")
            if needed > in_all.get(word, 0) / unit:
                too_few.append(f"{in_all.get(word, 0) / unit:.3g} {name}")
        hint = (
            f". It has {', '.join(too_few)} in all: add machines, or stop this and ask for less, "
            "such as --cpus env=0.2, or cpu: 1 in an experiment"
        )
        return (
            f"waiting for the Ray cluster to have room for all processes, each on one machine: "
            f"{', '.join(words)}{hint if too_few else ''}"
        )


def _connect(address: str) -> Any:
    # Ray counts its users over the network unless it is told not to.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray = _ray("ray")
    except ImportError as error:
        raise ConfigurationError(
            f"--on ray needs Ray: pip install 'relaax[ray]' ({error})"
        ) from None
    if ":" in address and "://" not in address:
        _require_reachable(Address.parse(address))
    try:
        ray.init(address=address or None, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        where = f" at {address}" if address else ""
        raise ConfigurationError(f"--on ray: no cluster{where}: {_last_line(error)}") from error
    return ray


def _require_reachable(address: Address) -> None:
    """Raise ConfigurationError where no server listens: Ray tries for a minute, then aborts."""
    try:
        socket.create_connection((address.host, address.port), _CONNECT_S).close()
    except OSError as error:
        raise ConfigurationError(f"--on ray: no cluster at {address}: {error.strerror}") from error


def _ray(name: str) -> Any:
    """Return a module of Ray's, of which nothing is imported before it is needed."""
    return importlib.import_module(name)


def _last_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()
