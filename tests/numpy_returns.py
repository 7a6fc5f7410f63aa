"""Value targets of one rollout in numpy, step by step: all arrays are [T], values [T + 1]."""

import numpy as np


def returns_of(rewards, terminated, valid, values, discount, decay):
    """Lambda-returns of one rollout, from the last row backwards."""
    following, returns = values[-1], []
    for step in reversed(range(len(rewards))):
        if valid[step]:
            mixed = (1 - decay) * values[step + 1] + decay * following
            following = rewards[step] + discount * (1 - terminated[step]) * mixed
        else:
            following = values[step]
        returns.append(following)
    return np.array(returns[::-1])


def vtrace_of(rewards, terminated, valid, values, ratios, clips, discount, decay):
    """V-trace targets, advantages and their weights of one rollout, from the last row backwards."""
    following, correction, rows = values[-1], 0.0, []
    for step in reversed(range(len(rewards))):
        continues = discount * (1 - terminated[step])
        weight = valid[step] * min(ratios[step], clips.clip_rho)
        advantage = rewards[step] + continues * following - values[step]
        trace = valid[step] * decay * min(ratios[step], clips.clip_c)
        difference = rewards[step] + continues * values[step + 1] - values[step]
        correction = weight * difference + continues * trace * correction
        following = values[step] + correction
        rows.append((following, advantage, weight))
    return np.array(rows[::-1]).T


def retrace_of(rewards, terminated, values, chosen_values, traces, discount):
    """Retrace targets of one rollout: corrections of all later steps, summed up for each step."""
    steps, targets = len(rewards), []
    continues = discount * (1 - terminated)
    errors = rewards + continues * values[1:] - chosen_values
    for start in range(steps):
        target, factor = chosen_values[start], 1.0
        for step in range(start, steps):
            target += factor * errors[step]
            factor *= continues[step] * (traces[step + 1] if step + 1 < steps else 0.0)
        targets.append(target)
    return np.array(targets)
