"""Batches of transitions, and what an update makes of them computed in numpy, float64."""

import numpy as np
from driven_learner import DrivenLearner

from relaax.learning.off_policy import TransitionBatch
from relaax.parameters.optimizers import Adam, AdamSettings

COUNT, SIZE = 5, 3

#: What is added to the error of a transition, where they are drawn by their errors.
LEAST_PRIORITY = 1e-3


def batch_of(random, actions, noise):
    """Five transitions of three numbers; one ends its episode, and one is over two steps."""
    return TransitionBatch(
        observations=random.normal(size=(COUNT, SIZE)).astype(np.float32),
        actions=actions,
        rewards=random.normal(size=COUNT).astype(np.float32),
        discounts=np.array([0.9, 0.0, 0.9, 0.81, 0.9], np.float32),
        next_observations=random.normal(size=(COUNT, SIZE)).astype(np.float32),
        weights=np.array([1.0, 0.5, 1.0, 1.0, 0.25], np.float32),
        noise=noise,
    )


def hidden_outputs(network, vector, inputs):
    """What a network with one dense layer and heads puts out, by name; ReLU between them."""
    parts, at = {}, 0
    for spec in network.manifest.specs:
        parts[spec.name] = vector[at : at + spec.size].reshape(spec.shape)
        at += spec.size
    if network.is_named:
        inputs = np.concatenate([inputs[name] for name in sorted(inputs)], axis=1)
    hidden = np.maximum(inputs @ parts["dense0/kernel"] + parts["dense0/bias"], 0)
    outputs = {}
    for head in network.heads:
        below = hidden
        for name, _ in head.named_layers:
            below = np.maximum(below @ parts[f"{name}/kernel"] + parts[f"{name}/bias"], 0)
        outputs[head.name] = below @ parts[f"{head.name}/kernel"] + parts[f"{head.name}/bias"]
    return outputs


def critic_values(critic, vectors, count, observations, actions):
    inputs = {"observation": observations, "action": actions}
    parts = np.split(vectors, count)
    return np.stack([hidden_outputs(critic, part, inputs)["value"][:, 0] for part in parts])


def slope_of(function, vector):
    """The gradient of ``function`` at ``vector``, by central differences."""
    slope = np.zeros_like(vector)
    for index in range(len(vector)):
        step = np.zeros_like(vector)
        step[index] = 1e-6
        slope[index] = (function(vector + step) - function(vector - step)) / 2e-6
    return slope


def stepped(vector, slope, rate=3e-4):
    """The vector after Adam's first step."""
    moved = vector.astype(np.float32)
    Adam(len(vector), AdamSettings()).apply(moved, slope.astype(np.float32), rate)
    return moved


def require_state_to_the_bit(make_learner, batches):
    """A learner that goes on from another's state comes to the same, to the bit."""
    whole, half = (DrivenLearner(make_learner(3)) for _ in range(2))
    middle = len(batches) // 2
    for batch in batches:
        whole.step({"all": batch})
    for batch in batches[:middle]:
        half.step({"all": batch})
    restored = DrivenLearner(make_learner(99))
    restored.restore(half.state())
    for batch in batches[middle:]:
        restored.step({"all": batch})
    for name, value in whole.state().items():
        np.testing.assert_array_equal(restored.state()[name], value, err_msg=name)
