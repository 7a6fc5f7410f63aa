"""Learning-rate schedules."""


def linear_anneal(initial: float, global_t: int, max_global_step: float) -> float:
    """Return the rate at ``global_t``: ``initial`` at step 0, zero from ``max_global_step`` on.

    Mnih et al. 2016, section 5.1.
    """
    return initial * max(0.0, 1.0 - global_t / max_global_step)
