"""What operators see of an RLX server, which its watcher tells them."""

import os
import socket
from collections.abc import Iterable
from contextlib import closing

from relaax.server.common.operators import Metric, OperatorPort, counter, gauge
from relaax.server.common.operators.families import counters, histogram
from relaax.server.common.operators.port import AWAY_S
from relaax.server.rlx_server.admission import in_mib
from relaax.server.rlx_server.tally import Tally
from relaax.server.rlx_server.tally.row import CONNECTIONS, ENVIRONMENTS, HISTOGRAMS, STEPS
from relaax.server.rlx_server.tally.state import Cell, ServerState
from relaax.server.rlx_server.watcher import watch_parameter_server
from relaax.server.rlx_server.worker.settings import WorkerSettings

#: A server that has not looked around for so long serves nobody.
STUCK_S = 30.0

_MEANINGS = {
    "latency": ("act_latency_seconds", "From finding messages to the last answer to them"),
    "queue_wait": ("queue_wait_seconds", "From finding messages to evaluating the network"),
    "inference": ("inference_seconds", "One evaluation of the network"),
    "batch_size": ("batch_size", "Environments that were answered with one evaluation"),
}


def watch_and_tell(settings: WorkerSettings, tally: Tally, listener: socket.socket | None) -> int:
    """Watch the parameter server, and tell those who ask at ``listener`` how the RLX server is."""
    with closing(OperatorPort(listener, pid=os.getppid)) as port:
        state = tally.state
        port.alive_if(lambda: stuck(state))
        port.ready_if(lambda: "; ".join(not_ready(state)) or None)
        port.show(lambda: figures(tally))
        port.begin()
        return watch_parameter_server(settings, state)


def stuck(state: ServerState) -> str | None:
    """Return in words that the RLX server does nothing, if that is so."""
    seconds = state.seconds_since(Cell.LOOKED_AROUND)
    return f"it has done nothing for {seconds:.0f} s" if seconds > STUCK_S else None


def not_ready(state: ServerState) -> Iterable[str]:
    """Yield in words why connections should not be sent here."""
    if state[Cell.DRAINS]:
        yield "it is about to stop, and lets its connections go"
    elif not state[Cell.LISTENS]:
        yield "no worker takes connections"
    available, needed = int(state[Cell.AVAILABLE]), int(state[Cell.NEEDED])
    if available < needed:
        yield (
            f"{in_mib(available)} MiB of memory are available and a connection needs "
            f"{in_mib(needed)} MiB"
        )
    seconds = state.seconds_since(Cell.PARAMETER_SERVER_ANSWERED)
    if seconds > AWAY_S:
        yield "the parameter server does not answer"


def figures(tally: Tally) -> Iterable[Metric]:
    """Yield what the server and its workers have counted."""
    state, totals = tally.state, tally.totals()
    yield gauge("connections", "Connections that are served", totals[CONNECTIONS])
    yield gauge("environments", "Environments that are served", totals[ENVIRONMENTS])
    yield counter("steps", "Actions that were chosen for environments", totals[STEPS])
    yield counter("connections_accepted", "Connections given to a worker", state[Cell.ACCEPTED])
    yield counters(
        "connections_refused",
        "Connections that were closed at once",
        "reason",
        {
            "memory": state[Cell.REFUSED_FOR_MEMORY],
            "no worker": state[Cell.REFUSED_WITHOUT_WORKER],
        },
    )
    yield counters(
        "workers_lost",
        "Workers that did not end by themselves",
        "how",
        {"died": state[Cell.WORKERS_LOST], "hung": state[Cell.WORKERS_HUNG]},
    )
    yield gauge("memory_available_bytes", "Memory that is available", state[Cell.AVAILABLE])
    yield gauge("connection_memory_bytes", "What one more connection needs", state[Cell.NEEDED])
    yield gauge("draining", "1 while connections are let go before the end", state[Cell.DRAINS])
    answers = state.seconds_since(Cell.PARAMETER_SERVER_ANSWERED) <= AWAY_S
    yield gauge("parameter_server_up", "1 while the parameter server answers", answers)
    for name, (begin, bounds) in HISTOGRAMS.items():
        metric, means = _MEANINGS[name]
        total, *counts = totals[begin : begin + len(bounds) + 2].tolist()
        yield histogram(metric, means, bounds, counts, total)
