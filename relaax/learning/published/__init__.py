"""A parameter server whose parameters a learner publishes.

``parameters``  the parameters, what is known of them, and the global step
``evaluations`` the scores of evaluations, by the learner's steps
``service``     what answers workers and learners
"""

from relaax.learning.published.parameters import PublishedParameters
from relaax.learning.published.service import PublishedService

__all__ = ["PublishedParameters", "PublishedService"]
