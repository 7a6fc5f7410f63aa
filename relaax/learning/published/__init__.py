"""A parameter server whose parameters a learner publishes.

``parameters``  the parameters, what is known of them, and the global step
``evaluations`` the scores of evaluations, by the learner's steps
``service``     what answers workers and learners
``serving``     wires both
``source``      where actors find what was published
"""

from relaax.learning.published.parameters import PublishedParameters
from relaax.learning.published.service import PublishedService
from relaax.learning.published.serving import serve_published
from relaax.learning.published.source import PublishedSource

__all__ = ["PublishedParameters", "PublishedService", "PublishedSource", "serve_published"]
