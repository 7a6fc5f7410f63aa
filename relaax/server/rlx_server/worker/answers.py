"""Parts the actions of a turn among the requests that they answer."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from relaax.errors import ProtocolError
from relaax.server.rlx_server.worker.action_rule import ActionRule, UnusableActions
from relaax.server.rlx_server.worker.environments import FloatArray, NoEpisode
from relaax.server.rlx_server.worker.requests import Request
from relaax.server.rlx_server.worker.session import Actions, Session
from relaax.steps import Transitions


class Answer(NamedTuple):
    """The answer to a request."""

    session: Session
    #: [A, ...], of the environments that want one.
    actions: Actions
    #: float64 [E]: sums of rewards of the episodes that ended.
    scores: FloatArray


class Refusal(NamedTuple):
    """Why the session of a request ends instead."""

    session: Session
    error: Exception


def answers_to(
    requests: list[Request],
    transitions: Transitions,
    actions: Actions,
    scores: FloatArray,
    rule: ActionRule,
) -> Iterator[Answer | Refusal]:
    """Yield each request's own part of the actions and scores.

    Refusals name the fault of actions that ``rule`` does not let pass. Each request is refused for
    its own actions: a state that makes a network overflow is one client's alone.
    """
    count = len(transitions.acting)
    if rule.fits(actions, count):
        yield from _split(requests, transitions, actions, scores)
        return
    try:
        actions = rule.counted(actions, count)
    except UnusableActions as error:
        yield from (Refusal(request.session, error) for request in requests)
        return
    for answer in _split(requests, transitions, actions, scores):
        yield answer if isinstance(answer, Refusal) else _with_usable_actions(answer, rule)


def _with_usable_actions(answer: Answer, rule: ActionRule) -> Answer | Refusal:
    try:
        return answer._replace(actions=rule.usable(answer.actions))
    except UnusableActions as error:
        return Refusal(answer.session, error)


def _split(
    requests: list[Request], transitions: Transitions, actions: Actions, scores: FloatArray
) -> Iterator[Answer | Refusal]:
    """Yield each request's own part of the actions and scores."""
    acted = ended = 0
    for request in requests:
        actions_end, scores_end = acted + request.steps.actions, ended
        if not transitions.only_steps:
            scores_end += int(np.count_nonzero(request.steps.has_ended))
        own_scores = scores[ended:scores_end]
        if len(own_scores) and not np.isfinite(own_scores).all():
            error = ProtocolError("the sum of an episode's rewards is not finite")
            yield Refusal(request.session, error)
        else:
            yield Answer(request.session, actions[acted:actions_end], own_scores)
        acted, ended = actions_end, scores_end


def refusal(request: Request, error: Exception) -> Refusal:
    """Return a refusal that names the environment by the client's own number."""
    if isinstance(error, NoEpisode):
        number = int(np.flatnonzero(request.session.slots == error.slot)[0])
        error = ProtocolError(f"{error} in environment {number}")
    return Refusal(request.session, error)
