"""The cart and the pole of the page in ``examples/browser`` are those of Gymnasium."""

import json
import subprocess

import gymnasium
import numpy as np
import pytest
from processes import REPOSITORY
from programs import needs, program

_PROGRAM = """
import { readFileSync } from "node:fs";
import { CartPole } from "MODULE";
const { start, actions } = JSON.parse(readFileSync(0, "utf8"));
const cartPole = new CartPole();
[cartPole.x, cartPole.speed, cartPole.angle, cartPole.turning] = start;
const states = [];
for (const action of actions) {
  cartPole.step(action);
  states.push([...cartPole.state]);
  if (cartPole.isOver) break;
}
console.log(JSON.stringify(states));
"""


@needs(program("node") is not None, "needs Node.js, which runs JavaScript")
@pytest.mark.parametrize("seed", range(3))
def test_the_same_actions_lead_to_the_same_states(seed):
    environment = gymnasium.make("CartPole-v1")
    start, _ = environment.reset(seed=seed)
    actions = np.random.default_rng(seed).integers(0, 2, 500).tolist()
    expected = []
    for action in actions:
        state, _, terminated, truncated, _ = environment.step(action)
        expected.append(state)
        if terminated or truncated:
            break
    module = (REPOSITORY / "examples" / "browser" / "cartpole.js").as_uri()
    printed = subprocess.run(
        [str(program("node")), "--input-type=module", "--eval", _PROGRAM.replace("MODULE", module)],
        input=json.dumps({"start": start.tolist(), "actions": actions}),
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    states = json.loads(printed.stdout)
    assert len(states) == len(expected) > 5
    np.testing.assert_allclose(states, expected, atol=1e-4)
