"""A parameter server whose parameters a learner publishes.

``parameters``  the parameters, what is known of them, and the global step
``policies``    parameters of policies beside the default one, by name
``lineage``     which publications continue the one before
``service``     what answers workers and learners
"""

from relaax.parameters.published.parameters import PublishedParameters, PublishedSource
from relaax.parameters.published.service import PublishedService, serve_published

__all__ = ["PublishedParameters", "PublishedService", "PublishedSource", "serve_published"]
