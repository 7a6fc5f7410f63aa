"""Drives one Gymnasium environment through a ``Client``."""

from typing import Any

from relaax.client.action_masks import MaskReader
from relaax.client.checks import single_flag, single_number
from relaax.client.gymnasium_actions import action_decoder, action_space_as_json
from relaax.client.gymnasium_edges import keep_observations
from relaax.client.gymnasium_executed import ExecutedActionReader
from relaax.client.gymnasium_factory import Environment
from relaax.client.gymnasium_observations import observation_space_as_json, state_encoder
from relaax.client.rlx_client import Client
from relaax.client.simulator import RunObserver, Step
from relaax.client.simulator_runner import SimulatorRunner, StopCondition


class GymnasiumSimulator:
    """A Gymnasium environment as a simulator; the first episode gets ``seed``.

    ConfigurationError when there is something in its spaces that cannot be sent; ``apply`` raises
    ``UnusableAction`` when the server's actions do not fit the environment.
    """

    def __init__(
        self,
        environment: Environment,
        name: str,
        seed: int | None,
        observer: RunObserver | None = None,
    ) -> None:
        self.name = name
        self.observation_space: dict[str, Any] | None = observation_space_as_json(
            environment.observation_space
        )
        self.action_space: dict[str, Any] | None = action_space_as_json(environment.action_space)
        self._environment = keep_observations(environment)
        self._seed = seed
        self._masks = MaskReader((observer or RunObserver()).on_doubt)
        self._encode = state_encoder(environment.observation_space)
        self._decode = action_decoder(environment.action_space)
        self._executed = ExecutedActionReader(environment.action_space)

    def restart(self) -> Any:
        """Start an episode and return its first state."""
        observation, info = self._environment.reset(seed=self._seed)
        self._seed = None
        return self._masks.beside(self._encode(observation), info)

    def apply(self, action: Any) -> Step:
        """Make a step."""
        made = self._decode(action)
        observation, reward, terminated, truncated, info = self._environment.step(made)
        is_terminated = single_flag("terminated", terminated)
        executed = self._executed.of_one(info, made, action)
        state = self._encode(observation)
        return Step(
            single_number("the reward", reward),
            state if is_terminated else self._masks.beside(state, info),
            is_terminated,
            single_flag("truncated", truncated),
            executed,
        )

    def close(self) -> None:
        """Close the environment."""
        self._environment.close()


class GymnasiumRunner(SimulatorRunner):
    """Plays episodes of one environment for as long as the server answers.

    The first ``env.reset`` gets ``seed``. ``SimulatorRunner`` has the rest.
    """

    def __init__(
        self,
        environment: Environment,
        client: Client,
        *,
        seed: int | None = None,
        observer: RunObserver | None = None,
        stop: StopCondition | None = None,
    ) -> None:
        simulator = GymnasiumSimulator(environment, type(environment).__name__, seed, observer)
        super().__init__(simulator, client, observer=observer, stop=stop)
