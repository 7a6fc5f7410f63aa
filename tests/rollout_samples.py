"""Rollouts with an end, a cut, starts and another action executed, in different places."""

import dataclasses

import numpy as np

from relaax.learning.rollouts import RolloutBatch
from relaax.observations import mapped


def random_rollouts(network, actions=3, count=3, steps=5, dtype=np.float32):
    """``count`` rollouts of ``steps`` rows for ``network``, the same each time."""
    generator = np.random.default_rng(11)
    shape = network.observation_shape
    if isinstance(shape, dict):
        observations = {
            name: _draw(generator, (steps + 1, count, *shape[name]), dtype[name]) for name in shape
        }
    else:
        observations = _draw(generator, (steps + 1, count, *shape), dtype)
    ends = generator.integers(0, steps, count)
    cuts = (ends + 2) % steps
    columns = np.arange(count)
    terminated = np.zeros((steps, count), np.float32)
    valid = np.ones((steps, count), np.float32)
    starts = np.zeros((steps + 1, count), np.float32)
    terminated[ends, columns] = 1
    valid[cuts, columns] = 0
    on_policy = valid.copy()
    on_policy[(ends + 1) % steps, columns] = 0
    starts[ends + 1, columns] = 1
    starts[cuts + 1, columns] = 1
    return RolloutBatch(
        observations=observations,
        starts=starts,
        actions=generator.integers(0, actions, (steps, count)).astype(np.int32),
        extras={"log_probability": -generator.random((steps, count)).astype(np.float32)},
        rewards=generator.normal(size=(steps, count)).astype(np.float32),
        terminated=terminated,
        valid=valid,
        on_policy=on_policy,
        recurrent_state=generator.normal(size=(2, count, network.lstm_size)).astype(np.float32),
        versions=np.zeros(count, np.int64),
    )


def _draw(generator, shape, dtype):
    if dtype == np.uint8:
        return generator.integers(0, 256, shape, np.uint8)
    return generator.normal(size=shape).astype(np.float32)


def column_of(rollouts, column):
    """One of several rollouts, alone."""
    parts = {
        field.name: mapped(lambda part: part[:, column : column + 1], getattr(rollouts, field.name))
        for field in dataclasses.fields(rollouts)
        if field.name != "versions"
    }
    return dataclasses.replace(rollouts, **parts, versions=rollouts.versions[:1])
