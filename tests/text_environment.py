"""An environment that RLX cannot carry: Gymnasium knows it as ``text_environment:Words-v0``."""

import gymnasium


class Words(gymnasium.Env):
    """Observes text."""

    observation_space = gymnasium.spaces.Text(5)
    action_space = gymnasium.spaces.Discrete(2)


gymnasium.register("Words-v0", Words)
