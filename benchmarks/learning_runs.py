"""RELAAX on an environment of learning.py, with the servers that its configuration needs."""

import argparse
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from curves import Episode, Progress
from event_files import EventFiles
from launch import Workers
from learning_cases import CASES, Case
from learning_evaluation import evaluated
from relaax_runs import configuration, environments, launch_with, steps_at_the_end
from servers import Servers, running_servers, temporary_directory
from uncounted import Uncounted, most_uncounted

from relaax.telemetry.metrics import EPISODE_REWARD

#: Seconds between two readings of the event files.
_LOOK_INTERVAL_S = 1.0


def relaax_episodes(
    name: str, seed: int, most_seconds: float, arguments: argparse.Namespace
) -> Iterator[Progress]:
    """Train on an environment of ``CASES``; yield how far it is, and what has ended since before.

    The global step is known when an episode ends, and at the end.
    """
    case = CASES[name]
    section, workers = configuration(
        argparse.Namespace(
            config=case.config_path, changes=arguments.changes, workers=arguments.workers
        )
    )
    section["seed"] = seed
    if arguments.steps is not None:
        section["max_global_step"] = arguments.steps
    episodes = case.evaluation_episodes
    if arguments.evaluation_episodes is not None:
        episodes = arguments.evaluation_episodes
    with temporary_directory() as directory:
        training = Training(Path(directory), case, section, workers, is_kept=episodes > 0)
        for progress in training.run(seed, most_seconds):
            latest = progress
            yield progress
        if episodes:
            place = Path(directory) / "evaluation"
            found = evaluated(place, section, training.checkpoints, case, seed, episodes)
            yield replace(latest, ended=[], evaluation=found)


class Training:
    """A training in ``directory``; what it has learnt in the end ``is_kept`` in ``checkpoints``."""

    def __init__(
        self, directory: Path, case: Case, section: dict[str, Any], workers: Workers, is_kept: bool
    ) -> None:
        self.checkpoints = directory / "checkpoints"
        self._directory = directory
        self._case = case
        self._section = section
        self._workers = workers
        self._learner = case.learner_options
        self._options = {"metrics-dir": str(directory / "metrics")}
        if is_kept:
            self._options["checkpoint-dir"] = str(self.checkpoints)

    def run(self, seed: int, most_seconds: float) -> Iterator[Progress]:
        """Train until the steps are done or the time is over; yield how far it is."""
        case, launch = self._case, launch_with(self._workers, seed)
        latest = Progress(0, 0.0, [])
        with running_servers(
            self._directory, self._section, launch, self._options, self._learner
        ) as servers:
            episodes = self._episodes()
            with environments(
                servers.rlx_server_url,
                case.env_id,
                case.per_connection,
                seed,
                count=case.environments,
                env_kwargs=case.env_kwargs,
            ) as played:
                for progress in self._until(most_seconds, episodes, servers, played):
                    latest = progress
                    yield progress
        steps = steps_at_the_end(self._log("relaax-parameter-server"))
        yield Progress(steps, min(latest.seconds, most_seconds), episodes.new())

    def _until(
        self,
        most_seconds: float,
        episodes: "EndedEpisodes",
        servers: Servers,
        played: subprocess.Popen[bytes],
    ) -> Iterator[Progress]:
        """Yield how far the training is, once a second."""
        progress = Progress(0, 0.0, [])
        while self._is_running(servers, played):
            ended = episodes.new()
            steps = max([progress.steps, *(episode.steps for episode in ended)])
            progress = Progress(steps, episodes.seconds, ended)
            yield progress
            if progress.seconds >= most_seconds:
                return
            time.sleep(_LOOK_INTERVAL_S)

    def _episodes(self) -> "EndedEpisodes":
        workers = None if self._learner is None else self._workers
        uncounted = most_uncounted(self._section, self._case, workers)
        return EndedEpisodes(EventFiles(self._directory / "metrics"), uncounted)

    def _is_running(self, servers: Servers, played: subprocess.Popen[bytes]) -> bool:
        """Return whether it goes on; RuntimeError if environments or learner have failed."""
        if servers.parameter_server.poll() is not None:
            return False
        if played.poll() not in (None, 0):
            raise RuntimeError("the environments have failed; their messages are above")
        if servers.learner is not None and servers.learner.poll() not in (None, 0):
            raise RuntimeError(f"the learner has failed; it said:\n{self._log('relaax-learner')}")
        return True

    def _log(self, command: str) -> str:
        return (self._directory / f"{command}.log").read_text()


class EndedEpisodes:
    """Episodes of a training that begins now, from its event files."""

    def __init__(self, files: EventFiles, uncounted: Uncounted) -> None:
        self._files = files
        self._uncounted = uncounted
        self._began, self._began_wall = time.monotonic(), time.time()

    @property
    def seconds(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._began

    def new(self) -> list[Episode]:
        """Return the episodes that were written since the call before.

        They are dated with the most steps that can have been taken.
        """
        return [
            self._dated(event.step, event.wall_time - self._began_wall, value.simple_value)
            for event in self._files.new()
            for value in event.summary.value
            if value.tag == EPISODE_REWARD
        ]

    def _dated(self, counted: int, seconds: float, reward: float) -> Episode:
        return Episode(self._uncounted.most_at(counted, seconds), seconds, reward)
