"""RELAAX: a training service for environments that cannot live inside a training loop.

``relaax.client``          what an environment embeds; needs numpy only
``relaax.protocol``        the RLX protocol, which both of its ends share
``relaax.bridge``          gRPC between workers and the parameter server
``relaax.algorithm_base``  what an algorithm package implements
``relaax.learning``        what algorithms are built from
``relaax.server``          the RLX server, the parameter server and the launcher
"""

from importlib.metadata import version

__version__ = version("relaax")
