"""Masks of actions in ``info`` arrive as the observation that the server's configuration names."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from relaax.client import Client, VectorClient
from relaax.client.gymnasium_runner import GymnasiumRunner
from relaax.client.vector_runner import VectorRunner
from relaax.errors import ConfigurationError
from relaax.protocol import binary
from relaax.protocol.binary import Welcome

MODES = (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP)


class Masked(gymnasium.Env):
    """Counts to 3; what is allowed says the same number in bits, and lies in one array."""

    action_space = spaces.Discrete(2)

    def __init__(self, kind="box", ending="truncated", as_mask=lambda bits: bits, lasts=9):
        box = spaces.Box(0, 9, (1,), np.float32)
        self.observation_space = spaces.Dict({"board": box}) if kind == "dict" else box
        self.bits, self.as_mask = np.zeros(2, np.int8), as_mask
        self.kind, self.ending, self.lasts = kind, ending, lasts

    def seen(self):
        self.bits[:] = self.place % 2, self.place // 2
        observation = np.float32([self.place])
        has_mask = self.place < self.lasts
        info = {"action_mask": self.as_mask(self.bits)} if has_mask else {}
        return {"board": observation} if self.kind == "dict" else observation, info

    def reset(self, *, seed=None, options=None):
        self.place = 1
        return self.seen()

    def step(self, action):
        self.place += 1
        observation, info = self.seen()
        is_over = self.place == 3
        ends = (is_over and self.ending == "terminated", is_over and self.ending == "truncated")
        return observation, 1.0, *ends, info


def asks_for(server, names=("board", "legal"), mask="legal"):
    """Let the server say that it takes observations of these names."""
    inside = {name: {"type": "Box", "shape": [2 if name == mask else 1]} for name in names}
    if mask is not None:
        inside[mask]["action_mask"] = True
    welcome = binary.encode_welcome(Welcome({"type": "Dict", "spaces": inside}))
    server.greet = lambda number: welcome
    return server


def alone(server, environment, episodes=1):
    with Client(server.url) as client:
        GymnasiumRunner(environment, client).run(episodes)


def together(server, *environments, mode=MODES[0], kind=SyncVectorEnv, episodes=2):
    made = kind([lambda e=e: e for e in environments], autoreset_mode=mode)
    with VectorClient(server.url, len(environments)) as client:
        VectorRunner(made, client).run(episodes)
    made.close()


def in_rows(seen):
    """Each state's number, and its bits."""
    rows = zip(seen["board"], seen["legal"], strict=True) if len(seen) else ()
    return [(number.item(), *bits.tolist()) for number, bits in rows]


@pytest.mark.parametrize("kind", ["box", "dict"])
def test_one_environment_sends_the_mask_with_each_state(server, kind):
    alone(asks_for(server), Masked(kind), episodes=2)
    assert [in_rows(each.observations) for each in server.steps[:2]] == [[(1, 1, 0)], [(2, 0, 1)]]
    assert in_rows(server.steps[2].finals) == [(3, 1, 1)]
    assert in_rows(server.steps[3].observations) == [(1, 1, 0)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [SyncVectorEnv, AsyncVectorEnv])
def test_many_environments_do_so_too(server, mode, kind):
    as_mask = np.copy if kind is AsyncVectorEnv else lambda bits: bits
    both = [Masked("dict", ending, as_mask) for ending in ("truncated", "terminated")]
    together(asks_for(server), *both, mode=mode, kind=kind)
    seen = [row for each in server.steps for row in in_rows(each.observations)]
    assert set(seen) == {(1, 1, 0), (2, 0, 1)}
    assert in_rows(next(each.finals for each in server.steps if len(each.finals))) == [(3, 1, 1)]


def test_without_a_mask_in_the_configuration_states_stay_the_same(server):
    alone(server, Masked())
    assert server.steps[0].observations.tolist() == [[1]]
    together(server, Masked(), Masked())
    assert server.steps[-1].finals.tolist() == [[3], [3]]


def test_an_observation_that_has_the_mask_already_is_sent_as_it_is(server):
    """PettingZoo's habit."""
    with Client(asks_for(server, ("observation", "action_mask"), "action_mask").url) as client:
        client.init({"observation": [0.5], "action_mask": np.int8([1, 0])})
    assert server.steps[0].observations["action_mask"].tolist() == [[1, 0]]


def test_masks_of_several_choices_are_joined(server):
    alone(asks_for(server), Masked(as_mask=lambda bits: (bits[:1], bits[1:])))
    assert in_rows(server.steps[1].observations) == [(2, 0, 1)]
    together(server, Masked(as_mask=lambda bits: (bits[:1], bits[1:])))
    assert in_rows(server.steps[-2].observations) == [(2, 0, 1)]


def test_a_mask_that_is_missing_later_is_refused_by_name(server):
    asks_for(server)
    with pytest.raises(ConfigurationError, match="the info has no 'action_mask', and another one"):
        alone(server, Masked(lasts=2))
    for mode in MODES:
        with pytest.raises(ConfigurationError, match="the info of environment 1 has no"):
            together(server, Masked(), Masked(lasts=2), mode=mode)


class Late(Masked):
    """Says nothing of what is allowed where its episodes begin."""

    def reset(self, *, seed=None, options=None):
        return super().reset()[0], {}


def test_masks_that_come_after_the_first_state_are_sent_and_a_missing_one_is_an_error(server):
    """A server refuses the first state already, which lacks one."""
    alone(asks_for(server), Late())
    assert in_rows(server.steps[1].observations) == [(2, 0, 1)]
    with pytest.raises(ConfigurationError, match="the info of environment 0 has no"):
        together(server, Late())


@pytest.mark.parametrize("play", [alone, together])
@pytest.mark.parametrize("environment", [Masked(), Late(), Masked(lasts=2), Masked("dict")])
def test_masks_that_nobody_asks_for_are_a_doubt_that_is_said_once(
    server, caplog, play, environment
):
    play(asks_for(server, ("board",), None), environment)
    (doubt,) = caplog.messages
    assert doubt.startswith("doubtful: the environment gives masks of actions, info['action_mask']")
    assert "has no action_mask" in doubt


def test_the_last_state_of_an_episode_that_is_over_needs_no_mask(server):
    alone(asks_for(server), Masked(ending="terminated", lasts=3))
    for mode in MODES:
        together(server, Masked(ending="terminated", lasts=3), mode=mode)


def test_a_mask_that_is_said_twice_must_be_the_same(server):
    class Twice(Masked):
        def seen(self):
            observation, info = super().seen()
            return {"board": observation, "legal": 1 - self.bits}, info

    environment = Twice()
    box = spaces.Box(0, 1, (2,), np.int8)
    environment.observation_space = spaces.Dict(
        {"board": environment.observation_space, "legal": box}
    )
    with pytest.raises(ValueError, match=r"the observation legal is .* give the mask once"):
        alone(asks_for(server), environment)
