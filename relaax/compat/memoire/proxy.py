"""Passes calls on: many clients reach a server, and its messages reach them, through proxies."""

import logging
import threading
from contextlib import suppress
from typing import Any

import grpc

from relaax.compat.memoire.entry import MemoryClosed
from relaax.compat.memoire.ports import Bind, Conn, Handlers, Mode, Ports, target_of
from relaax.compat.memoire.service import LONGEST_WAIT_S, SERVICE_NAME, TopicServicer, fetch_handler
from relaax.compat.memoire.stub import CALL_TIMEOUT_S, MemoireStub
from relaax.compat.memoire.subscriber import PAUSE_S, Subscriber
from relaax.compat.memoire.topics import Message, Topics
from relaax.errors import BridgeError, ConfigurationError
from relaax.net import channel_options
from relaax.net.channels import open_channel
from relaax.replay.client.stub import ReplayAway

_log = logging.getLogger(__name__)

#: Calls at once, as Memoire's examples have it.
HIGH_WATER_MARK = 1024

#: Topics that a proxy follows; further ones are passed on one by one.
MOST_TOPICS = 64


class Proxy:
    """Proxies of one process. Each ``main`` returns when ``close`` is called."""

    def __init__(self) -> None:
        self._ports = Ports()
        self._closed = threading.Event()
        self._parts: list[Any] = []
        #: Larger messages are refused by ports that are opened from then on; not one of Memoire's.
        self.max_message_bytes = channel_options.MOST_BYTES

    def rep_proxy_main(
        self,
        front_ep: str,
        front_mode: Mode,
        back_ep: str,
        back_mode: Mode,
        hwm: int = HIGH_WATER_MARK,
    ) -> None:
        """Pass calls that come at ``front_ep`` on to a server, or proxy, at ``back_ep``.

        At most ``hwm`` calls at once.
        """
        handlers = self._behind(front_mode, back_ep, back_mode)
        self._ports.open(target_of(front_ep), handlers, hwm, self.max_message_bytes)
        self._closed.wait()

    #: Entries and log messages take the same way.
    pull_proxy_main = rep_proxy_main

    def pub_proxy_main(
        self,
        front_ep: str,
        front_mode: Mode,
        back_ep: str,
        back_mode: Mode,
        hwm: int = HIGH_WATER_MARK,
    ) -> None:
        """Subscribe to a server, or proxy, at ``front_ep``, and serve subscribers at ``back_ep``.

        Each message is fetched once, however many subscribers there are.
        """
        self._require((front_mode, Conn), (back_mode, Bind), "calls in front and listens behind")
        follower = Follower(target_of(front_ep))
        self._parts.append(follower)
        self._ports.open(
            target_of(back_ep), lambda: [follower.handlers()], hwm, self.max_message_bytes
        )
        self._closed.wait()

    def close(self) -> None:
        """Close all ports and let every ``main`` return."""
        self._closed.set()
        for part in self._parts:
            part.close()
        self._ports.close()

    def _behind(self, front_mode: Mode, back_ep: str, back_mode: Mode) -> Handlers:
        """Return what answers the calls that come in front."""
        self._require((front_mode, Bind), (back_mode, Conn), "listens in front and calls behind")
        forwarder = Forwarder(target_of(back_ep))
        self._parts.append(forwarder)
        return lambda: [forwarder]

    @staticmethod
    def _require(front: tuple[Mode, Mode], back: tuple[Mode, Mode], rule: str) -> None:
        if front[0] is not front[1] or back[0] is not back[1]:
            raise ConfigurationError(
                f"this proxy {rule}: its modes are {front[1].name} and {back[1].name}, not "
                f"{front[0].name} and {back[0].name}"
            )


class Forwarder(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """Answers every call with what a server at ``target`` answers."""

    def __init__(self, target: str) -> None:
        self._channel = open_channel(target)

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Return what answers a call, as gRPC asks it."""
        method = handler_call_details.method
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: self._forward(method, request, context)
        )

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()

    def _forward(self, method: str, request: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            answer: bytes = self._channel.unary_unary(method)(
                request, timeout=context.time_remaining() or CALL_TIMEOUT_S
            )
            return answer
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())
            raise AssertionError("abort raises") from error


class Follower:
    """Topics of a server at ``target``, each followed by a thread once it is asked for."""

    def __init__(self, target: str) -> None:
        self._stub = MemoireStub(target)
        self._topics = Topics()
        self._closed = threading.Event()
        self._subscriber = Subscriber(self._stub, self._closed)
        self._lock = threading.Lock()
        self._threads: dict[str, threading.Thread] = {}

    def newest(self, topic: str, known: int, timeout_s: float) -> Message | None:
        """Return the newest message of a topic, as ``Topics`` does."""
        if self._follows(topic):
            return self._topics.newest(topic, known, timeout_s)
        with suppress(ReplayAway):
            return self._stub.fetch(topic, known, timeout_s)
        return None

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return what answers subscribers."""
        fetch = fetch_handler(TopicServicer(self.newest))
        return grpc.method_handlers_generic_handler(SERVICE_NAME, {"Fetch": fetch})

    def close(self) -> None:
        """Follow no more."""
        self._closed.set()
        self._topics.close()
        self._stub.close()
        with self._lock:
            threads = list(self._threads.values())
        for thread in threads:
            thread.join(LONGEST_WAIT_S)

    def _follows(self, topic: str) -> bool:
        with self._lock:
            is_full = len(self._threads) >= MOST_TOPICS or self._closed.is_set()
            if topic in self._threads or is_full:
                return topic in self._threads
            thread = threading.Thread(
                target=self._follow, args=(topic,), name=f"topic {topic}", daemon=True
            )
            self._threads[topic] = thread
            thread.start()
            return True

    def _follow(self, topic: str) -> None:
        with suppress(MemoryClosed):
            while not self._closed.wait(0):
                try:
                    self._topics.put(topic, self._subscriber.next(topic, timeout_s=None))
                except BridgeError as error:
                    _log.warning("following %r again: %s", topic, error)
                    self._closed.wait(PAUSE_S)
