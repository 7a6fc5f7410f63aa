"""The agent: an algorithm's logic for one environment."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from relaax.algorithm_base.bridge_base import ParameterLink
from relaax.algorithm_base.config_base import ConfigBase
from relaax.errors import InvalidState
from relaax.spaces import Space
from relaax.steps import UNNAMED_AGENT, AgentName, Evaluation
from relaax.telemetry.metrics import Metrics


@dataclass(frozen=True)
class EnvironmentInfo:
    """The announcement of an environment's client, with the worker's additions."""

    #: Its name for people; "" where the client says none, as in version 1 of the protocol.
    name: str
    #: As announced; None where the client says none.
    observation_space: Space | None
    action_space: Space | None
    #: Its number on its connection, from 0.
    number: int
    #: From 0 to 2**32 - 1. Each environment of a worker has another one, and in all likelihood
    #: each one that connects to any RLX server.
    seed: int
    #: Returns its place among all environments that train now, from 0 on, which no other one has:
    #: so each of N can have one of N sizes of exploration. Within a second of its start it may
    #: change; when it goes away, the next one gets its place.
    place: Callable[[], int] = field(default=lambda: 0, compare=False)
    #: The agent that acts in it, and its group: the agents of one environment.
    agent: AgentName = UNNAMED_AGENT


@dataclass(frozen=True)
class EvaluatedPolicy:
    """Which policy an episode is played with."""

    #: None where versions have been counted anew since the episode began: its parameter server has
    #: started again.
    version: int | None
    #: The global step when the worker got the policy; None where another process has it.
    global_t: int | None
    #: Whether the version is the learner's count of its steps, as in a parameter database.
    by_learner: bool = False


class AgentBase(ABC):
    """Chooses actions and learns from rewards.

    A worker drives it, one call for each message of its client::

        action = agent.act(state)                           # an episode starts
        while the episode goes on:
            action = agent.reward_and_act(reward, state)    # the reward of the previous action
        agent.reward_and_reset(reward)                      # the episode is over (terminated), or
        agent.reward_and_truncate(reward, state)            # it was cut off, in this state

    ``act`` in the middle of an episode means that it was given up: the state of the last
    ``reward_and_act`` was its last, and the action chosen there was never taken. A client of
    version 1 has no other way to say that an episode was cut off.

    A state is what the client sent. In version 2 that is an int, a float, a numpy array, or a dict
    of arrays by name, which the agent may keep and change; in version 1 anything that JSON can
    hold, such as a list. An action is an int, a float or a numpy array, and fits the
    configuration's action space: the worker closes the connection of an agent that returns another
    one. Raise ``InvalidState`` for a state that cannot be used: the worker closes that connection,
    with the reason in its log and for the client. After any other exception the log has the
    traceback, and the client stops with the reason.

    An ``Agent`` that takes an argument ``seed`` is given an int from 0 to 2**32 - 1 there, another
    one for each agent of a worker and, in all likelihood, on all RLX servers, so that agents of one
    configuration do not all draw the same numbers.
    ``connected`` says more of the environment, and ``evaluate`` that it is to learn nothing.
    """

    def __init__(self, config: ConfigBase, parameter_server: ParameterLink) -> None:
        """Keep the configuration and the stub; called in the worker, after the fork."""
        self.config = config
        self.parameter_server = parameter_server

    def evaluate(self, evaluation: Evaluation) -> None:
        """Learn nothing, count no step, and play each episode with one policy from now on.

        Called at most once, before ``connected``, for an environment that evaluates. By default
        InvalidState: the agent cannot do so, and the connection is refused with these words.
        """
        raise InvalidState("the algorithm of this server cannot evaluate: its agent only learns")

    def policy(self) -> EvaluatedPolicy | None:
        """Return the policy of the episode, after ``evaluate``; None, by default, if unknown.

        Scores of an unknown policy are shown at the step at which they come.
        """
        return None

    def connected(self, environment: EnvironmentInfo) -> None:
        """Take the environment's description; called once, before the first state comes."""

    @abstractmethod
    def act(self, state: Any) -> Any:
        """Take the first state of an episode and return an action."""

    def executed(self, action: Any) -> None:
        """Take the action that the environment executed in its step, before that step's reward.

        It may be another one than the one chosen. An algorithm that learns from actions learns from
        this one. Raise InvalidState for one that does not fit. By default InvalidState, always:
        the connection is closed, with the reason.
        """
        raise InvalidState(
            "the algorithm of this server takes no executed actions: its agent would learn from "
            "the action that it chose"
        )

    @abstractmethod
    def reward_and_act(self, reward: float, state: Any) -> Any:
        """Take the reward of the previous action and the next state; return an action."""

    @abstractmethod
    def reward_and_reset(self, reward: float) -> float | None:
        """Take the last reward of an episode that is over.

        The result is not used: the worker sums the rewards itself.
        """

    def reward_and_truncate(self, reward: float, state: Any) -> None:
        """Take the last reward and the last state of an episode that was cut off.

        The episode could have gone on from ``state``, for example after a time limit: its value
        there is not 0. By default this is a step whose action is never taken.
        """
        self.reward_and_act(reward, state)

    def metrics(self) -> Metrics:
        """Return where scalars go; by default to the parameter server."""
        return self.parameter_server.metrics()

    def close(self) -> None:
        """Release the agent's resources; called when the client has disconnected."""
