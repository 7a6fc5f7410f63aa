"""A process that watches the parameter server, and shows operators how the RLX server is."""

import logging
import os
import signal
import socket
import time
from collections.abc import Iterable
from contextlib import closing

from relaax.algorithm_base import Phase
from relaax.errors import Abandoned, BridgeError
from relaax.server.rlx_server.admission import in_mib
from relaax.server.rlx_server.places import PlaceTable
from relaax.server.rlx_server.tally import (
    ACCESS_DENIED,
    CONNECTIONS,
    ENVIRONMENTS,
    EPISODES,
    HISTOGRAMS,
    LOST,
    RESTS,
    RETURNS,
    STEPS,
    TURNED_AWAY,
    Cell,
    Row,
    Tally,
)
from relaax.server.rlx_server.worker.settings import Exploitation, WorkerSettings
from relaax.telemetry.kept_counts import DELIVERED, DROPPED, TAKEN
from relaax.telemetry.live_lines import Figure
from relaax.telemetry.operators import Metric, OperatorPort, counter, gauge
from relaax.telemetry.operators.families import counters, histogram
from relaax.telemetry.operators.port import AWAY_S
from relaax.telemetry.throttled_log import RepeatedWarning

_log = logging.getLogger(__name__)

#: Exit status of the watcher when the training is over: the RLX server closes too.
TRAINING_IS_OVER = 10

#: Exit status of the watcher when nobody knows whether the training goes on.
PARAMETER_SERVER_IS_GONE = 11

#: How often the watcher asks.
WATCH_INTERVAL_S = 0.5

#: How long one question waits for a parameter server that is away.
WAIT_S = 1.0

#: A server that has not looked around for so long does not serve.
STUCK_S = 30.0

_MEANINGS = {
    "latency": ("act_latency_seconds", "From finding messages to the last answer to them"),
    "queue_wait": ("queue_wait_seconds", "From finding messages to evaluating the network"),
    "inference": ("inference_seconds", "One evaluation of the network"),
    "batch_size": ("batch_size", "Environments that were answered with one evaluation"),
}


def watch_and_tell(settings: WorkerSettings, tally: Tally, listener: socket.socket | None) -> int:
    """Watch the parameter server, and answer at ``listener`` how the RLX server is."""
    with closing(OperatorPort(listener, pid=os.getppid)) as port:
        state = tally.state
        port.alive_if(lambda: stuck(state))
        exploitation = settings.exploitation
        has_parameter_server = exploitation is None
        port.ready_if(lambda: "; ".join(not_ready(state, has_parameter_server)) or None)
        port.show(lambda: figures(tally, has_parameter_server))
        port.show_refused(lambda: {"RLX": access_denied(tally)})
        if exploitation is not None:
            port.show(lambda: figures_of_exploitation(exploitation, tally))
        port.begin()
        while exploitation is not None:  # without a parameter server no training ends
            signal.pause()  # until the RLX server ends this process
        return watch_parameter_server(settings, state, tally.places)


def watch_parameter_server(settings: WorkerSettings, state: Row, places: PlaceTable) -> int:
    """Return when the parameter server closes after the training.

    Meanwhile ``state`` is kept up to date, and the server's ``places`` among all RLX servers.

    Exit if the parameter server stays away for ``give_up_s``, also at the start: the training may
    have ended meanwhile.

    In a process of its own, so that the RLX server itself never starts gRPC.
    """
    stub = settings.stub()
    stub.wait_at_most(WAIT_S)
    complaint, started_at = RepeatedWarning(_log), time.monotonic()
    while True:
        try:
            if stub.phase() is Phase.CLOSING:
                stub.close()
                return TRAINING_IS_OVER
            state.note_now(Cell.PARAMETER_SERVER_ANSWERED)
            held = places.held()
            places.note(held, stub.places(held))
            complaint.forget()
        except BridgeError as error:
            state.note_now(Cell.PARAMETER_SERVER_WAS_AWAY)
            complaint.say(str(error))
            heard_at = state[Cell.PARAMETER_SERVER_ANSWERED]
            if time.monotonic() - (heard_at or started_at) > settings.give_up_s:
                _log.error(
                    "%s: the RLX server stops",
                    Abandoned(
                        "the parameter server",
                        settings.give_up_s,
                        str(error),
                        has_answered=heard_at > 0,
                    ),
                )
                return PARAMETER_SERVER_IS_GONE
        time.sleep(WATCH_INTERVAL_S)


def served(settings: WorkerSettings, tally: Tally) -> list[Figure]:
    """Return the figures of the live line if a checkpoint is exploited; else nothing."""
    totals = tally.totals()
    if settings.exploitation is None:
        return []
    episodes = Figure(totals[EPISODES], "episodes")
    if not totals[EPISODES]:
        return [episodes]
    return [episodes, Figure(totals[RETURNS] / totals[EPISODES], "mean return")]


def stuck(state: Row) -> str | None:
    """Return in words that the RLX server does nothing, if that is so."""
    seconds = state.seconds_since(Cell.LOOKED_AROUND)
    return f"it has done nothing for {seconds:.0f} s" if seconds > STUCK_S else None


def not_ready(state: Row, has_parameter_server: bool = True) -> Iterable[str]:
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
    if has_parameter_server and seconds > AWAY_S:
        yield "the parameter server does not answer"


def access_denied(tally: Tally) -> float:
    """Return how many connections have shown no token or certificate that counts."""
    return float(tally.state[Cell.ACCESS_DENIED] + tally.totals()[ACCESS_DENIED])


def figures(tally: Tally, has_parameter_server: bool = True) -> Iterable[Metric]:
    """Yield the counts of the server and its workers."""
    state, totals = tally.state, tally.totals()
    yield gauge("connections", "Connections that are served", totals[CONNECTIONS])
    yield gauge("environments", "Environments that are served", totals[ENVIRONMENTS])
    yield counter("steps", "Actions that were chosen for environments", totals[STEPS])
    steps = tally.kept.totals()
    yield counter("steps_taken", "Steps whose reward has come, to be learnt from", steps[TAKEN])
    yield counters(
        "steps_left",
        "The same by their fate, for algorithms with a learner of their own",
        "how",
        {how: steps[how] for how in (DELIVERED, DROPPED, LOST)},
    )
    yield counter("connections_accepted", "Connections given to a worker", state[Cell.ACCEPTED])
    yield counters(
        "connections_refused",
        "Connections that were closed at once",
        "reason",
        {
            "memory": state[Cell.REFUSED_FOR_MEMORY],
            "limit": state[Cell.REFUSED_FOR_LIMIT],
            "no access": access_denied(tally),
            "not proved": state[Cell.TURNED_AWAY] + totals[TURNED_AWAY],
            "no worker": state[Cell.REFUSED_WITHOUT_WORKER],
        },
    )
    yield counter(
        "metric_rests",
        "Times that a connection had sent all metrics that are read in a second, and waited",
        totals[RESTS],
    )
    yield counters(
        "workers_lost",
        "Workers that did not end by themselves",
        "how",
        {"died": state[Cell.WORKERS_LOST], "hung": state[Cell.WORKERS_HUNG]},
    )
    yield gauge("memory_available_bytes", "Memory that is available", state[Cell.AVAILABLE])
    yield gauge(
        "connection_memory_bytes", "Memory that one more connection needs", state[Cell.NEEDED]
    )
    yield gauge("draining", "1 while connections are let go before the end", state[Cell.DRAINS])
    if has_parameter_server:
        answers = state.seconds_since(Cell.PARAMETER_SERVER_ANSWERED) <= AWAY_S
        yield gauge("parameter_server_up", "1 while the parameter server answers", answers)
    for name, place in HISTOGRAMS.items():
        metric, means = _MEANINGS[name]
        cells = totals[place.begin : place.end].tolist()
        yield histogram(metric, means, place.bounds, cells)


def figures_of_exploitation(exploitation: Exploitation, tally: Tally) -> Iterable[Metric]:
    """Yield the served environments, and their returns."""
    totals, trained = tally.totals(), exploitation.trained
    yield gauge("exploited_global_step", "Global step of the checkpoint", trained.global_t)
    yield counter("episodes", "Episodes that have ended", totals[EPISODES])
    yield gauge("episode_returns_sum", "Sum of the returns of these episodes", totals[RETURNS])
