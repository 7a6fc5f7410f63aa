"""RELAAX: a training service for environments that cannot live inside a training loop.

``relaax.client``          what an environment embeds; needs numpy only
``relaax.common``          what both ends share: RLX protocol, bridge, flat parameters, metrics
``relaax.algorithm_base``  what an algorithm package implements
``relaax.server``          the RLX server, the parameter server and the launcher
"""

from importlib.metadata import version

__version__ = version("relaax")
