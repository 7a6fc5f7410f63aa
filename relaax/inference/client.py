"""Asks inference servers: one of several, and another one when it is away."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import grpc

from relaax.algorithm_base.inference import Answer, ArrayForm, Question
from relaax.errors import BridgeError, ConfigurationError, TokenRefused
from relaax.inference import inference_pb2
from relaax.inference.servers import InferenceServers
from relaax.inference.wire import (
    ANSWERS,
    QUESTIONS,
    SERVICE_NAME,
    answer_of,
    forms_digest,
    forms_of,
    question_message,
)
from relaax.net.channels import open_channel
from relaax.net.payloads import WithPayload
from relaax.net.reachability import RetryPause

_log = logging.getLogger(__name__)

#: Status codes while a server is away, or a connection breaks; INTERNAL if it breaks within an
#: answer.
AWAY = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.INTERNAL,
)

#: A server that does not answer for so long is away; a late answer is ignored.
CALL_TIMEOUT_S = 5.0

#: How long a question is repeated while all servers are away.
WAIT_S = 120.0

#: When a client that has left its own server, which was away, asks it first again: after so long,
#: and after twice as long each time that it is still away. One that hangs costs the time of a call.
HOME_AGAIN_S, LONGEST_HOME_AGAIN_S = 5.0, 300.0


class InferenceAway(BridgeError):
    """No inference server has answered for a long time."""


class _Server:
    """One inference server; made after a fork, since gRPC has threads."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._channel = open_channel(url)
        self._choose = self._channel.unary_unary(
            f"/{SERVICE_NAME}/Choose", QUESTIONS.encode, ANSWERS.decode
        )
        self._describe = self._channel.unary_unary(
            f"/{SERVICE_NAME}/Describe",
            inference_pb2.Nothing.SerializeToString,
            inference_pb2.Description.FromString,
        )

    def choose(
        self, message: WithPayload[inference_pb2.Question], timeout_s: float
    ) -> WithPayload[inference_pb2.Answer]:
        answer: WithPayload[inference_pb2.Answer] = self._choose(message, timeout=timeout_s)
        return answer

    def forms(self, timeout_s: float) -> dict[str, ArrayForm]:
        return forms_of(self._describe(inference_pb2.Nothing(), timeout=timeout_s))

    def close(self) -> None:
        self._channel.close()


class InferenceClient:
    """Plays ``Inference``: asks ``servers``, which it closes; their addresses may change.

    Clients with other numbers ``first`` begin with other servers. A question that a server does not
    answer, or not within ``call_timeout_s``, goes to the next one; all it depends on is in it, so
    that it may be answered twice. InferenceAway, which names the servers, when that was in vain for
    ``wait_s``, or when ``goes_on`` returns False. For one thread.
    """

    def __init__(
        self,
        servers: InferenceServers,
        first: int = 0,
        wait_s: float = WAIT_S,
        call_timeout_s: float = CALL_TIMEOUT_S,
        goes_on: Callable[[], bool] = lambda: True,
    ) -> None:
        self._source = servers
        self._servers: dict[str, _Server] = {}
        self._first = first
        #: The addresses of the server that has answered last, and of this client's own.
        self._at = self._home = ""
        self._home_again_at, self._home_pause_s = 0.0, HOME_AGAIN_S
        self._wait_s = wait_s
        self._call_timeout_s = call_timeout_s
        self._goes_on = goes_on
        self._forms: Mapping[str, ArrayForm] = {}
        self._digest = 0
        self._pause = RetryPause(_log)
        self._closed = threading.Event()

    def expect(self, forms: Mapping[str, ArrayForm]) -> None:
        """See Inference."""
        self._forms, self._digest = forms, forms_digest(forms)

    def choose(self, question: Question) -> Answer:
        """See Inference."""
        message = question_message(question, self._digest)
        give_up_at = time.monotonic() + self._wait_s
        while True:
            urls = self._source.urls()
            why = [] if urls else [self._source.why_none()]
            for url in self._order(urls):
                server = self._server(url)
                try:
                    reply = server.choose(message, self._call_timeout_s)
                except grpc.RpcError as error:
                    why.append(self._why_away(server, error))
                    continue
                self._note(url)
                return answer_of(reply)
            self._source.look_again()
            if time.monotonic() > give_up_at or not self._goes_on():
                raise InferenceAway("; ".join(why))
            self._pause.wait("; ".join(why), self._closed)

    def close(self) -> None:
        """See Inference."""
        self._closed.set()
        self._source.close()
        for server in self._servers.values():
            server.close()

    def _order(self, urls: Sequence[str]) -> Sequence[str]:
        """Return all servers: the one that answered last first, or now and then the own one."""
        if not urls:
            return urls
        for gone in self._servers.keys() - set(urls):
            self._servers.pop(gone).close()
        self._home = urls[self._first % len(urls)]
        begin, now = self._at if self._at in urls else self._home, time.monotonic()
        if begin != self._home and now >= self._home_again_at:
            begin, self._home_again_at = self._home, now + self._home_pause_s
            self._home_pause_s = min(2 * self._home_pause_s, LONGEST_HOME_AGAIN_S)
        at = urls.index(begin)
        return [*urls[at:], *urls[:at]]

    def _server(self, url: str) -> _Server:
        if url not in self._servers:
            self._servers[url] = _Server(url)
        return self._servers[url]

    def _note(self, url: str) -> None:
        """Take note of an answer."""
        if url != (self._at or self._home):
            _log.warning("asking inference server %s from now on", url)
            self._home_again_at = time.monotonic() + HOME_AGAIN_S
            self._home_pause_s = HOME_AGAIN_S
        self._at = url
        if self._pause.reset():
            _log.warning("inference server %s answers now", url)

    def _why_away(self, server: _Server, error: grpc.RpcError) -> str:
        """Return in words that a server is away; raise for all other errors."""
        code, why = error.code(), f"inference server {server.url}: {error.details()}"
        if code in AWAY:
            return why
        if code is grpc.StatusCode.FAILED_PRECONDITION:
            raise ConfigurationError(f"{why}{self._differences(server)}") from error
        kind = TokenRefused if code is grpc.StatusCode.UNAUTHENTICATED else BridgeError
        raise kind(why) from error

    def _differences(self, server: _Server) -> str:
        """Return in words how the server's arrays differ; empty where it does not say it."""
        try:
            theirs = server.forms(self._call_timeout_s)
        except grpc.RpcError:
            return ""
        names = {*self._forms, *theirs}
        differing = sorted(name for name in names if self._forms.get(name) != theirs.get(name))
        described = [
            f"{name} is {_in_words(self._forms.get(name))} here and {_in_words(theirs.get(name))} "
            "there"
            for name in differing
        ]
        return "".join(f"; {each}" for each in described)


def _in_words(form: ArrayForm | None) -> str:
    return "missing" if form is None else f"{form.dtype} {list(form.shape)}"
