"""The HTTP port for operators: health checks, and figures for Prometheus."""

import json
import os
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from ssl import SSLContext
from typing import TYPE_CHECKING, TypeAlias

from prometheus_client import CollectorRegistry, Metric, ProcessCollector, make_wsgi_app
from prometheus_client.registry import Collector

from relaax.address import Address
from relaax.errors import CheckpointError, NoSuchVersion
from relaax.net.access import Access, Right, TlsFiles, current_access
from relaax.net.access.file_stamp import FromFiles
from relaax.net.access.process_access import BEGUN
from relaax.net.access.tls import server_contexts
from relaax.net.access.tokens import digest_of
from relaax.net.listening import listen_as_told
from relaax.telemetry.operators.certificates import Certificates
from relaax.telemetry.operators.families import counters
from relaax.telemetry.operators.http_server import HttpServer

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

#: The fault, in words for people; None while all is well.
Check: TypeAlias = Callable[[], str | None]

#: Returns figures as they are now.
Figures: TypeAlias = Callable[[], Iterable[Metric]]

#: Returns what is shown of a path below its own, for JSON; NoSuchVersion for one that is not there.
Page: TypeAlias = Callable[[str], object]

#: A parameter server that has not answered for so long is away: all ask it twice a second.
AWAY_S = 5.0

#: How often the thread looks whether it should end.
_POLL_S = 0.1

_PATHS = "/healthz, /readyz and /metrics are here"

_UNAUTHORIZED = "a token of the role monitor or server is needed: Authorization: Bearer TOKEN"
_SHOWN_NONE = "no token was shown, and this page needs one"
_BEARER = ("WWW-Authenticate", "Bearer")


def away(silence_s: Callable[[], float]) -> Check:
    """Return a check for a parameter server that is silent for ``silence_s``."""

    def check() -> str | None:
        return "the parameter server does not answer" if silence_s() > AWAY_S else None

    return check


def operator_listener(address: Address | None) -> socket.socket | None:
    """Return a socket that listens at ``address``, if there is one.

    ConfigurationError, which names the option, if the address cannot be had.
    """
    return None if address is None else listen_as_told(address, "--http-bind")


class OperatorPort(Collector):
    """Answers HTTP at ``listener``, which it owns, on threads of its own.

    - ``/healthz``: 200 while the process does its work, 503 and the fault otherwise.
    - ``/readyz``: the same about readiness for requests; not ready before ``begin``. The result of
      ``note`` is appended to an "ok": it keeps no callers away.
    - ``/metrics``: all figures, the process ``pid``'s, too, for Prometheus.
    - the path of each ``page``, and paths below it: what that shows, as JSON.

    Without a listener it answers nothing: a server need not ask whether there is one. Expiring
    certificates are logged all the same, and so are counts of refusals at all ports of the
    processes that share a refusal log. Not ``has_certificates``: another process reports these.
    """

    def __init__(
        self,
        listener: socket.socket | None,
        pid: Callable[[], int] = os.getpid,
        *,
        has_certificates: bool = True,
    ) -> None:
        self._access = current_access()
        self._pid = pid
        self._alive: list[Check] = []
        self._ready: list[Check] = []
        self._has_begun = False
        self._note_ready: Callable[[], str] = str
        self._refused_elsewhere: Callable[[], Mapping[str, float]] = dict
        self._certificates = Certificates(self._access.tls if has_certificates else None)
        self._figures: list[Figures] = [
            self._refused,
            self._grpc_connections,
            self._certificates.figures,
        ]
        self._pages: dict[str, Page] = {}
        self._server: HttpServer | None = None
        #: Whether anybody can ask.
        self.is_open = listener is not None
        if listener is not None:
            self._listen(listener)

    def _listen(self, listener: socket.socket) -> None:
        registry = CollectorRegistry()
        ProcessCollector(pid=self._pid, registry=registry)
        registry.register(self)
        self._answer_metrics: Callable[..., Iterable[bytes]] = make_wsgi_app(registry)
        self._server = HttpServer(listener, self._answer, _contexts(self._access))
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), name="operators", daemon=True
        )
        self._thread.start()

    def begin(self) -> None:
        """Take note that the server has started."""
        self._has_begun = True

    def alive_if(self, check: Check) -> None:
        """Let ``/healthz`` ask, too."""
        self._alive.append(check)

    def ready_if(self, check: Check) -> None:
        """Let ``/readyz`` ask, too."""
        self._ready.append(check)

    def note(self, note: Callable[[], str]) -> None:
        """Let ``/readyz`` append this, too, if it is not empty."""
        self._note_ready = note

    def show(self, figures: Figures) -> None:
        """Let ``/metrics`` show these, too."""
        self._figures.append(figures)

    def page(self, name: str, page: Page) -> None:
        """Let ``/name`` and paths below it show this, too."""
        self._pages[name] = page

    def show_refused(self, totals: Callable[[], Mapping[str, float]]) -> None:
        """Let ``relaax_refused_total`` count refusals of other processes, too, by the port."""
        self._refused_elsewhere = totals

    def close(self) -> None:
        """Answer nothing any more."""
        self._certificates.close()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def _refused(self) -> Iterable[Metric]:
        here = {"gRPC": 0, "HTTP": 0, **self._access.refusals.totals()}
        totals = {**here, **self._refused_elsewhere()}
        yield counters("refused", "Callers without the right token", "port", totals)

    def _grpc_connections(self) -> Iterable[Metric]:
        if self._access.tls is None:
            return
        totals = self._access.grpc_connections.totals()
        if self._access.tokens is None:
            totals = {BEGUN: totals[BEGUN]}  # no caller has to prove more than a certificate
        yield counters("grpc_connections", "Connections of TLS to gRPC ports", "how_far", totals)

    def collect(self) -> Iterable[Metric]:
        """Return all figures; Prometheus' registry asks for them."""
        for figures in self._figures:
            yield from figures()

    def _answer(
        self, environ: "WSGIEnvironment", start_response: "StartResponse"
    ) -> Iterable[bytes]:
        token = str(environ.get("HTTP_AUTHORIZATION", "")).removeprefix("Bearer ")
        host = environ["REMOTE_ADDR"]
        may_observe = self._may_observe(token, host)
        match environ["PATH_INFO"]:
            case "/healthz":
                complaints = _complaints(self._alive)
                return _say(start_response, complaints, may_observe, self._insecure)
            case "/readyz":
                complaints = _complaints(self._ready) if self._has_begun else ["it is starting"]
                note = f"; {said}" if may_observe and (said := self._note_ready()) else ""
                return _say(start_response, complaints, may_observe, note + self._insecure)
            case _ if not may_observe:
                if not token:
                    self._access.refusals.add("HTTP", host, _SHOWN_NONE)
                return _answer_text(start_response, "401 Unauthorized", _UNAUTHORIZED, _BEARER)
            case "/metrics":
                return self._answer_metrics(environ, start_response)
        name, _, below = environ["PATH_INFO"].removeprefix("/").partition("/")
        if name in self._pages:
            return _answer_page(start_response, self._pages[name], below, environ)
        return _answer_text(start_response, "404 Not Found", _PATHS)

    @property
    def _insecure(self) -> str:
        return " (insecure: --insecure is given)" if self._access.is_insecure else ""

    def _may_observe(self, token: str, host: str) -> bool:
        """Return whether a caller may know how all is; take note of a token that is wrong."""
        tokens = self._access.tokens
        reason = None if tokens is None else tokens.why_refused(digest_of(token), Right.OBSERVE)
        if reason is not None and token:
            self._access.refusals.add("HTTP", host, reason)
        return reason is None


def _contexts(access: Access) -> FromFiles[SSLContext] | None:
    """Return the TLS context, if there is one: a caller shows a token, and no certificate."""
    if access.tls is None or access.tls.cert is None:
        return None
    return server_contexts(TlsFiles(access.tls.cert, access.tls.key), False)


def _complaints(checks: Iterable[Check]) -> list[str]:
    return [complaint for check in checks if (complaint := check()) is not None]


def _say(
    start_response: "StartResponse", complaints: list[str], in_words: bool, note: str
) -> Iterable[bytes]:
    """Answer whether it is well; with the fault for callers with access."""
    status = "503 Service Unavailable" if complaints else "200 OK"
    said = "; ".join(complaints) if in_words else "not now"
    return _answer_text(start_response, status, f"{said if complaints else 'ok'}{note}")


def _answer_page(
    start_response: "StartResponse", page: Page, below: str, environ: "WSGIEnvironment"
) -> Iterable[bytes]:
    if environ["REQUEST_METHOD"] != "GET":
        return _answer_text(start_response, "405 Method Not Allowed", "GET alone", ("Allow", "GET"))
    try:
        shown = page(below.rstrip("/"))
    except NoSuchVersion as error:
        return _answer_text(start_response, "404 Not Found", str(error))
    except CheckpointError as error:  # the next time may succeed
        return _answer_text(start_response, "503 Service Unavailable", str(error))
    start_response("200 OK", [("Content-Type", "application/json")])
    return [f"{json.dumps(shown)}\n".encode()]


def _answer_text(
    start_response: "StartResponse", status: str, text: str, *headers: tuple[str, str]
) -> Iterable[bytes]:
    start_response(status, [("Content-Type", "text/plain; charset=utf-8"), *headers])
    return [f"{text}\n".encode()]
