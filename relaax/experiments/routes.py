"""Where the processes of a trial listen, and the options by which actors reach them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from relaax.configuration.option_kinds import identifier_text
from relaax.experiments.workers import (
    ActorWorker,
    AgentSpec,
    BufferWorker,
    InferenceStream,
    PolicyWorker,
    SampleStream,
    TrainerWorker,
)
from relaax.experiments.written import NamedExperiment
from relaax.processes.identifiers import LATEST

HOST = "localhost"


def identifier_words(user: InferenceStream | PolicyWorker) -> list[str]:
    """Return options of the process that pulls a policy: which version of it."""
    text = identifier_text(user.policy_identifier)
    return [] if text == LATEST else ["--policy-identifier", text]


@dataclass(frozen=True)
class TrainedPolicy:
    """A policy, its trainers and buffers, and where their processes listen."""

    name: str
    trainers: Sequence[TrainerWorker]
    buffers: Sequence[BufferWorker]
    #: The parameter server's, one of each learner, and one of each replay server.
    ports: Sequence[int]

    @property
    def parameter_server(self) -> str:
        """The address of its parameter server."""
        return f"{HOST}:{self.ports[0]}"

    @property
    def learners(self) -> list[str]:
        """The addresses of its learners."""
        return [f"{HOST}:{port}" for port in self.ports[1:][: len(self.trainers)]]

    @property
    def replay_servers(self) -> list[str]:
        """The addresses of its replay servers, one for each buffer."""
        return [f"{HOST}:{port}" for port in self.ports[1 + len(self.trainers) :]]

    def takers_of(self, stream_name: str) -> list[str]:
        """Return the addresses of those that take the steps of a sample stream."""
        takers: list[TrainerWorker | BufferWorker] = [*self.trainers, *self.buffers]
        addresses = [*self.learners, *self.replay_servers]
        return [
            address
            for worker, address in zip(takers, addresses, strict=True)
            if worker.takes.stream_name == stream_name
        ]


class Routes:
    """The ways of a trial's actors to its ``policies``, by their names.

    ``registry`` is ``etcd://HOST:PORT``, for names of streams; None for the parameter servers.
    """

    def __init__(
        self,
        experiment: NamedExperiment,
        trial: str,
        policies: Mapping[str, TrainedPolicy],
        registry: str | None,
    ) -> None:
        self._experiment = experiment
        self._trial = trial
        self._policies = policies
        self._registry = registry

    def places(self, actor: ActorWorker, index: int) -> tuple[int, ...]:
        """Return the place of a worker's taker among those of each of its sample streams."""
        return tuple(
            index % max(len(self._takers_of(stream)), 1) if stream.is_of_index else 0
            for stream in actor.sample_streams
        )

    def policy_of(self, actor: ActorWorker, spec: AgentSpec) -> str:
        """Return the name of the policy that acts for a specification's agents."""
        stream = actor.inference_streams[spec.inference_stream_idx]
        if stream.type_ is InferenceStream.Type.INLINE:
            return str(stream.policy_name)
        return self._server_of(stream).policy_name

    def inference_words(self, actor: ActorWorker, spec: AgentSpec) -> list[str]:
        """Return options of ``relaax-actor``: how the policy of agents is asked."""
        stream = actor.inference_streams[spec.inference_stream_idx]
        if stream.type_ is not InferenceStream.Type.INLINE:
            return ["--inference-servers", self.name_of(self._server_of(stream))]
        seconds = stream.pull_interval_seconds
        mode, interval = ("episode", "1") if seconds is None else ("second", f"{seconds:g}")
        fetched = ["--fetch-parameter-mode", mode, "--fetch-parameter-interval", interval]
        return [*fetched, *identifier_words(stream)]

    def is_team(self, actor: ActorWorker, spec: AgentSpec) -> bool:
        """Return whether the episodes of an environment's agents are sent together."""
        types = {each.type_ for each in actor.samples_of(spec)}
        return SampleStream.Type.NAME_MULTI_AGENT in types

    def sample_words(self, actor: ActorWorker, spec: AgentSpec, places: Sequence[int]) -> list[str]:
        """Return options of ``relaax-actor``: where the steps of agents go; see ``places``.

        Where nobody takes them nothing is learnt.
        """
        is_deterministic = spec.deterministic_action
        streams = actor.samples_of(spec)
        evaluated = ["--mode", "eval_deterministic" if is_deterministic else "eval_stochastic"]
        names = [each.stream_name for each in streams if each.type_ is not SampleStream.Type.NULL]
        reported = [*evaluated, *(["--eval-stream", ",".join(names)] if names else [])]
        if actor.is_evaluation:
            return reported
        takers = [
            address
            for number, stream in zip(spec.sample_streams, streams, strict=True)
            for address in self._takers(stream, places[number])
        ]
        if not takers:
            return reported
        more = ["--when-full", "drop"] if any(each.when_full == "drop" for each in streams) else []
        more += ["--deterministic"] if is_deterministic else []
        if len(takers) == 1:
            return ["--learner", takers[0], *more]
        in_turn = streams[0].type_ is SampleStream.Type.NAME_ROUND_ROBIN
        spread = "round-robin" if in_turn else "broadcast"
        return ["--replay-servers", *takers, "--spread", spread, *more]

    def name_of(self, worker: PolicyWorker) -> str:
        """Return the name of a policy worker's stream, with its registry."""
        segments = self._experiment.name, self._trial, worker.inference_stream.stream_name
        path = "/".join(quote(segment, safe="") for segment in segments)
        own = f"names://{self._policies[worker.policy_name].parameter_server}"
        return f"{self._registry or own}/{path}"

    def _takers(self, stream: SampleStream, place: int) -> list[str]:
        """Return the addresses of those that get steps of a stream."""
        takers = self._takers_of(stream)
        return takers[place : place + 1] if stream.is_of_index else takers

    def _takers_of(self, stream: SampleStream) -> list[str]:
        """Return the addresses of all that take steps of a stream."""
        if stream.type_ is SampleStream.Type.NULL:
            return []
        return [
            address
            for policy in self._policies.values()
            for address in policy.takers_of(stream.stream_name)
        ]

    def _server_of(self, stream: InferenceStream) -> PolicyWorker:
        """Return the first policy worker of a stream."""
        workers = self._experiment.config.policies
        return next(each for each in workers if each.inference_stream == stream)
