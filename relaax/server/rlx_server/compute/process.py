"""The compute process: waits for workers, answers everybody who waits at once."""

import logging
import os
import select
import socket
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaax.algorithm_base import BatchAgentBase
from relaax.errors import ComputeError
from relaax.interval_metrics import IntervalMetrics
from relaax.metrics import Metrics
from relaax.server.rlx_server.compute.exchange import Exchange, Layout, merged
from relaax.server.rlx_server.compute.link import Link
from relaax.steps import IntArray

_log = logging.getLogger(__name__)

READY = b"ready"

#: The network is made ready for batches of up to so many environments before anybody is admitted.
WARMED_ENVIRONMENTS = 128

#: A thread that learns must not keep the one that acts waiting: Python's default is 5 ms.
_THREAD_SWITCH_S = 0.0002

_DOORBELL_BYTES = 64 * 1024


@dataclass(frozen=True)
class Client:
    """A worker whose environments are served."""

    link: Link
    exchange: Exchange
    slots: IntArray


class ComputeLoop:
    """Answers workers until the RLX server closes its end of ``introductions``.

    ``introductions`` brings the links of new workers, ``doorbell`` the numbers of those that wait.
    """

    def __init__(
        self,
        agent: BatchAgentBase,
        metrics: Metrics,
        introductions: socket.socket,
        doorbell: int,
    ) -> None:
        self._agent = agent
        self._metrics = metrics
        self._means = IntervalMetrics(metrics)
        self._introductions = introductions
        self._doorbell = doorbell
        self._clients: dict[int, Client] = {}
        self._numbers: dict[Link, int] = {}
        #: By descriptor.
        self._links: dict[int, Link] = {}
        self._next_number = 0
        self._observations: tuple[str, tuple[int, ...]] | None = None
        self._warmed = WARMED_ENVIRONMENTS
        self._is_open = True

    def run(self) -> None:
        """Serve; whatever the agent raises ends the process, and with it all links."""
        sys.setswitchinterval(_THREAD_SWITCH_S)
        self._agent.warm_up(self._warmed)
        self._introductions.send(READY)
        introductions = self._introductions.fileno()
        with select.epoll() as self._poll:
            for descriptor in (self._doorbell, introductions):
                self._poll.register(descriptor, select.EPOLLIN)
            try:
                self._serve(introductions)
            finally:
                for link in list(self._links.values()):
                    self._forget(link)

    def _serve(self, introductions: int) -> None:
        """Do what there is to do, as it comes."""
        while self._is_open:
            for descriptor, _ in self._poll.poll():
                if descriptor == self._doorbell:
                    self._answer(os.read(descriptor, _DOORBELL_BYTES))
                elif descriptor == introductions:
                    self._meet()
                else:
                    self._listen(self._links[descriptor])

    def _meet(self) -> None:
        """Take the link of a new worker."""
        data, descriptors, _, _ = socket.recv_fds(self._introductions, 16, 1)
        if not data:
            self._is_open = False
        for descriptor in descriptors:
            link = Link(socket.socket(fileno=descriptor))
            self._links[descriptor] = link
            self._poll.register(descriptor, select.EPOLLIN)

    def _listen(self, link: Link) -> None:
        """Take what a worker tells beside its observations."""
        try:
            message, _ = link.receive()
            if "metrics" in message:
                for name, y, x in message["metrics"]:
                    self._metrics.scalar(name, y, x)
            else:
                self._admit(link, message)
        except ComputeError as error:
            _log.debug("a worker has gone: %s", error)
            self._forget(link)

    def _admit(self, link: Link, message: dict[str, Any]) -> None:
        kind = (message["dtype"], tuple(message["shape"]))
        if self._observations not in (None, kind):
            said, others = _words(kind), _words(self._observations)
            link.send({"refused": f"observations are {said}, those of others here {others}"})
            return
        dtype, shape = self._agent.action_type()
        layout = Layout(message["environments"], *kind, dtype.str, shape)
        try:
            slots, descriptor = self._make_room(layout)
        except (MemoryError, OSError) as error:
            _log.warning("no room for %d more environments: %s", layout.environments, error)
            link.send({"no room": f"there is no room for {layout.environments} more environments"})
            return
        number, self._next_number = self._next_number, self._next_number + 1
        try:
            exchange = Exchange(layout, descriptor)
            exchange.slots[:] = slots
            self._clients[number] = Client(link, exchange, slots)
            self._numbers[link] = number
            self._observations = kind
            link.send({"number": number, "layout": layout.as_json()}, (descriptor,))
        finally:
            os.close(descriptor)

    def _make_room(self, layout: Layout) -> tuple[IntArray, int]:
        """Return slots, and the descriptor of memory; MemoryError or OSError without traces."""
        if layout.environments > self._warmed:
            self._warmed = layout.environments
            self._agent.warm_up(self._warmed)
        slots = self._agent.open(layout.environments)
        try:
            return slots, Exchange.new_memory()
        except OSError:
            self._agent.close_slots(slots)
            raise

    def _forget(self, link: Link) -> None:
        descriptor = link.fileno()
        self._poll.unregister(descriptor)
        del self._links[descriptor]
        link.close()
        number = self._numbers.pop(link, None)
        if number is not None:
            self._agent.close_slots(self._clients.pop(number).slots)
        if not self._clients:
            self._observations = None  # others may come with another kind

    def _answer(self, rung: bytes) -> None:
        """Answer all workers that have rung, with one evaluation of the network."""
        numbers = memoryview(rung).cast("I")
        clients = [self._clients[number] for number in numbers if number in self._clients]
        if not clients:
            return
        began_at = time.monotonic()
        parts = [client.exchange.read() for client in clients]
        actions = self._agent.act(merged(parts))
        acted_at = time.monotonic()
        begin = 0
        for client, part in zip(clients, parts, strict=True):
            end = begin + len(part[1])
            client.exchange.write_actions(actions[begin:end])
            begin = end
            _wake(client.link)
        self._report(parts, began_at, acted_at)

    def _report(self, parts: list[Any], began_at: float, acted_at: float) -> None:
        size = sum(len(part[1]) for part in parts)
        self._means.spread("inference batch size", (size,))
        self._means.spread("inference queue wait", [began_at - part[3] for part in parts])
        self._means.spread("inference time", (acted_at - began_at,))
        self._means.store_if_due()


def _wake(link: Link) -> None:
    try:
        link.wake()
    except OSError:
        return  # the worker has gone; its link says so next


def _words(kind: tuple[str, tuple[int, ...]] | None) -> str:
    return "unknown" if kind is None else f"{np.dtype(kind[0]).name}{list(kind[1])}"
