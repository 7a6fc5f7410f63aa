"""Targets of values, and advantages: n-step returns, V-trace and Retrace.

All tensors are time-major. A rollout of T rows is followed by one more, the bootstrap row: its
value stands for what would have been earned after it. A row that is not valid is no step but the
state in which an episode was cut off; it stands for the future in the same way.

rewards, terminated, valid: float32 [T, K]; values: float32 [T + 1, K].
"""

import tensorflow as tf


def n_step_targets(
    rewards: tf.Tensor,
    terminated: tf.Tensor,
    valid: tf.Tensor,
    values: tf.Tensor,
    discount: float,
    trace_decay: float = 1.0,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return n-step returns and their advantages, [T, K] each.

    Mnih et al. 2016 (https://arxiv.org/abs/1602.01783), algorithm S3: ``R_t = r_t + discount *
    R_{t+1}``; nothing follows a terminated step, and ``R_t`` of a row that is not valid is its
    value. With a ``trace_decay`` (lambda) below 1 they are lambda-returns, Sutton and Barto 2018,
    equation (12.2) in recursive form: ``R_t = r_t + discount * ((1 - lambda) * V_{t+1} + lambda *
    R_{t+1})``; the advantages then are as in Schulman et al. 2016
    (https://arxiv.org/abs/1506.02438), equation (16).
    """
    continues = discount * (1.0 - terminated)
    earned = rewards + continues * (1.0 - trace_decay) * values[1:]
    returns = _linear_recurrence(
        tf.where(valid > 0, earned, values[:-1]), valid * continues * trace_decay, values[-1]
    )
    return returns, returns - values[:-1]


def vtrace_targets(
    rewards: tf.Tensor,
    terminated: tf.Tensor,
    valid: tf.Tensor,
    values: tf.Tensor,
    log_ratios: tf.Tensor,
    discount: float,
    trace_decay: float,
    clip_rho: float,
    clip_c: float,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Return V-trace value targets, advantages and the weights of these, [T, K] each.

    Espeholt et al. 2018 (https://arxiv.org/abs/1802.01561), equation (1) in the recursive form of
    remark 1. The policy gradient of section 4.2 takes ``rho_t * (r_t + discount * v_{t+1} - V_t)``:
    rho_t is the weight, the rest the advantage. They are apart because a baseline is subtracted
    from the advantage alone.

    log_ratios: float32 [T, K], ``log pi(a_t | x_t) - log mu(a_t | x_t)``: the policy that learns
    against the one that acted. ``clip_rho`` and ``clip_c`` are the paper's rho-bar and c-bar;
    ``trace_decay`` multiplies each c, as in remark 2.
    """
    ratios = tf.exp(log_ratios)
    rho = valid * tf.minimum(ratios, clip_rho)
    trace = valid * trace_decay * tf.minimum(ratios, clip_c)
    continues = discount * (1.0 - terminated)
    deltas = rho * (rewards + continues * values[1:] - values[:-1])
    corrections = _linear_recurrence(deltas, continues * trace, tf.zeros_like(values[-1]))
    targets = values[:-1] + corrections
    following = tf.concat([targets[1:], values[-1:]], axis=0)
    return targets, rewards + continues * following - values[:-1], rho


def retrace_targets(
    rewards: tf.Tensor,
    terminated: tf.Tensor,
    values: tf.Tensor,
    chosen_values: tf.Tensor,
    traces: tf.Tensor,
    discount: float,
) -> tf.Tensor:
    """Return Retrace targets of the values of the actions taken, [T, K].

    Munos et al. 2016 (https://arxiv.org/abs/1606.02647), equation (4), in the recursive form of
    Wang et al. 2017 (https://arxiv.org/abs/1611.01224), equation (5): ``Q_t = r_t + discount *
    (V_{t+1} + c_{t+1} * (Q_{t+1} - q_{t+1}))``. Nothing follows a terminated step, and the value
    alone stands for the future behind the last row and where a trace is 0.

    chosen_values: float32 [T, K], q_t, the present values of those actions; values: V_t, their
    means over the policy. traces: float32 [T, K], c_t: ``min(1, pi(a_t | x_t) / mu(a_t | x_t))``
    for Retrace, and 0 for a row that is not valid.
    """
    continues = discount * (1.0 - terminated)
    nothing = tf.zeros_like(values[-1:])
    following = tf.concat([traces[1:], nothing], axis=0)
    replaced = following * tf.concat([chosen_values[1:], nothing], axis=0)
    earned = rewards + continues * (values[1:] - replaced)
    return _linear_recurrence(earned, continues * following, nothing[0])


def normalized(advantages: tf.Tensor, valid: tf.Tensor) -> tf.Tensor:
    """Return advantages [T, K] with mean 0 and standard deviation 1 over the steps that are valid.

    As many implementations of policy gradients do; Andrychowicz et al. 2021
    (https://arxiv.org/abs/2006.05990), section 3.4, looks at its effect.
    """
    count = tf.maximum(tf.reduce_sum(valid), 1.0)
    mean = tf.reduce_sum(valid * advantages) / count
    variance = tf.reduce_sum(valid * tf.square(advantages - mean)) / count
    return (advantages - mean) / (tf.sqrt(variance) + 1e-8)


def _linear_recurrence(added: tf.Tensor, factors: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
    """Return x [T, K] of ``x_t = added_t + factors_t * x_{t+1}``, where x_T is ``last`` [K].

    In log2(T) rounds of whole tensors (Hillis and Steele 1986) instead of T steps of rows: after a
    round, each row knows twice as many of the rows that follow it.
    """
    rows = added.shape[0] + 1
    x = tf.concat([added, last[tf.newaxis]], axis=0)
    factors = tf.concat([factors, tf.zeros_like(last)[tf.newaxis]], axis=0)
    reach = 1
    while reach < rows:
        shifted = [[0, reach], [0, 0]]
        x += factors * tf.pad(x[reach:], shifted)
        factors *= tf.pad(factors[reach:], shifted)
        reach *= 2
    return x[:-1]
