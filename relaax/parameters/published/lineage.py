"""Which publications continue the one before, and which would replace another learner's work."""

from relaax.algorithm_base import Lineage
from relaax.errors import NotContinued

_ADVICE = (
    "Give the learner the checkpoints that it has lost, or connect it to the parameter server of "
    "its own training; with --start-afresh its values replace those that are published"
)


def require_continued(before: Lineage, published: int, shown: Lineage, iteration: int) -> None:
    """Raise NotContinued for a publication that would replace what it does not continue.

    ``published`` and ``iteration`` are the learners' counts of their steps: nothing is lost with
    one of 0. A learner that goes on from its newest checkpoint may be behind what it has published
    since then; one that shows neither a training nor a checkpoint may not.
    """
    if shown.is_afresh or published == 0:
        return
    if shown.training != before.training:
        raise NotContinued(
            f"a learner would publish step {iteration:,} of {_named(shown)}, which does not "
            f"continue step {published:,} of {_named(before)}, which is published. {_ADVICE}"
        )
    if not shown.training and not shown.resumes and iteration < published:
        raise NotContinued(
            f"a learner would publish step {iteration:,} of {_named(shown)}, and shows no "
            f"checkpoint that it goes on from: step {published:,} is published. {_ADVICE}"
        )
    if shown.holds < before.resumes:
        raise NotContinued(
            f"a learner would publish step {iteration:,} of {_named(shown)}, whose newest "
            f"checkpoint is of step {shown.holds:,}: step {published:,} is published, and a "
            f"checkpoint of step {before.resumes:,} was saved before. {_ADVICE}"
        )


def _named(lineage: Lineage) -> str:
    return f"training {lineage.training}" if lineage.training else "a training without a name"
