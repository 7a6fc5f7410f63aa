"""The agent of many environments at once."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from relaax.algorithm_base.agent_base import EnvironmentInfo, EvaluatedPolicy
from relaax.algorithm_base.inference import Answering, ChoiceTimes
from relaax.errors import ConfigurationError, InvalidState
from relaax.observations import Observations
from relaax.steps import Evaluation, States, Transitions

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]


class BatchAgentBase(ABC):
    """Chooses actions for all environments that ask, with one evaluation of the network.

    Optional: an algorithm whose package exports ``make_batch_agent`` serves many environments in
    one go. A worker makes one and calls it for the environments of all of its connections::

        agent = make_batch_agent(config, parameter_server, seed, learns_in_background)
        agent.learns                                            # whether it learns as it serves
        agent.warm_up(most)
        agent.open(slots)                                       # a connection has come
        agent.connected(slots, environments)                    # it has announced itself
        states = agent.check(what_clients_sent)                 # InvalidState closes one of them
        executed = agent.check_executed(actions)                # so does this
        actions = agent.act(transitions, states, finals)        # some of all environments
        agent.close_slots(slots)                                # a connection has gone
        evaluator = agent.evaluator(evaluation)                 # a connection evaluates
        agent.watch_choices(observer)                           # an actor measures them
        agent.close()

    ``seed`` is an int below 2**32, another one for each worker on all RLX servers. An agent that
    learns in the background makes ``act`` wait at most while it does not keep up. Slots are the
    worker's small numbers for environments; the number of one that has disconnected is given to
    another.
    """

    @property
    def learns(self) -> bool:
        """Whether it learns while it serves; asked for once, when it has been made.

        A worker of several connections whose agent only serves lets other processes run before it
        looks for messages, so that more of them are answered with one evaluation. Learners, of this
        worker or of another one, would take that time for themselves.
        """
        return True

    def warm_up(self, environments: int) -> None:
        """Compile beforehand all that calls for up to ``environments`` need."""

    @abstractmethod
    def open(self, slots: IntArray) -> None:
        """Make room for environments that have come, at ``slots`` int64 [B].

        MemoryError when there is no room; then nothing has changed.
        """

    def connected(self, slots: IntArray, environments: Sequence[EnvironmentInfo]) -> None:
        """Take the descriptions of the environments at ``slots``, which have just been opened."""

    @abstractmethod
    def close_slots(self, slots: IntArray) -> None:
        """Forget the environments at ``slots``, which may be given to others."""

    @abstractmethod
    def check(self, states: States) -> Observations:
        """Return the states of B environments as an array [B, ...] of the dtype that ``act`` takes.

        ``states`` is an array [B, ...], a dict of such arrays by name, or a sequence of states; in
        version 1 of the protocol a state with names is a dict, too. States with names are returned
        as a dict of arrays [B, ...]. InvalidState for states that cannot be used. Nothing else
        changes.
        """

    def check_executed(self, actions: Sequence[Any] | Array) -> Array:
        """Return the actions that environments report to have executed, as ``act`` takes them.

        ``actions`` are an array [X, ...], or a sequence of actions; the result becomes
        ``Transitions.executed_actions``. InvalidState for actions that do not fit the action space.
        Nothing else changes. By default InvalidState, always: no environment may report any.
        """
        raise InvalidState(
            "the algorithm of this server takes no executed actions: its agent would learn from "
            "those that it chose"
        )

    @abstractmethod
    def act(
        self, transitions: Transitions, states: Observations, finals: Observations
    ) -> Sequence[Any] | Array:
        """Take all transitions since the last actions and return the next actions, [A, ...].

        They fit the configuration's action space: numbers of choices are integers in their range,
        numbers of a Box are finite. The worker closes a connection rather than send it others.

        ``states`` [A, ...] belong to ``transitions.acting``, ``finals`` [F, ...] to
        ``transitions.truncated``, both from ``check`` and all of one dtype, or with the same names
        and dtypes; where A or F is 0 they are any empty array. They belong to the caller again when
        this returns. No message of a client may make this fail.
        """

    def evaluator(self, evaluation: Evaluation) -> "EvaluatorBase":
        """Return the agent of environments that evaluate; it is closed before this agent is.

        By default InvalidState: the algorithm has no evaluator, and a connection that wants to
        evaluate is refused with these words.
        """
        raise InvalidState("the algorithm of this server cannot evaluate: its agent only learns")

    def inference(self) -> Answering:
        """Return what chooses for agents of other processes, which have no policy of their own.

        By default ConfigurationError: the algorithm has no such role.
        """
        raise ConfigurationError("this algorithm's agents choose for their own environments alone")

    def watch_choices(self, observer: Callable[[ChoiceTimes], object]) -> None:
        """Call ``observer`` with the times of each later choice, of later evaluators too.

        By default it is not called: nothing is known of the times.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the agent's resources."""


class EvaluatorBase(BatchAgentBase):
    """A batch agent that learns nothing, and plays each episode with one policy.

    ``BatchAgentBase.evaluator`` returns one. Its slots are its own, and not the slots of the agent
    that has returned it. It counts no step at the parameter server.
    """

    @property
    def learns(self) -> bool:
        """Return False."""
        return False

    @abstractmethod
    def policies(self, slots: IntArray) -> Sequence[EvaluatedPolicy | None]:
        """Return the policies of the episodes in ``slots``; None where it is not known.

        It is asked for when episodes have ended, before ``act`` begins the next ones.
        """
