"""The typed configuration of an algorithm."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from relaax.algorithm_base.roles import FloatVector
from relaax.errors import no_such_keys
from relaax.spaces import Space
from relaax.steps import AgentName

#: Annotation of a field that is a tuple, for a list of YAML.
LISTED = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)

#: Annotation of a field that is a section or None: true for its defaults, false for None.
SWITCHED = BeforeValidator(
    lambda value: ({} if value else None) if isinstance(value, bool) else value
)


class Section(BaseModel):
    """Derive from it and write the keys as fields, with types, limits and defaults.

    ``MySection.model_validate(dict(config))`` reads them. Types must fit exactly. A mistake is
    a ``ValidationError``, which a ``Config`` lets pass: the servers print a line of key, mistake
    and value. A key that is no field is refused, with the field that was probably meant.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, values: Any) -> Any:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        unknown = [key for key in values if key not in known] if isinstance(values, Mapping) else []
        if unknown:
            raise PydanticCustomError(
                "no_such_key", "{mistake}", {"mistake": no_such_keys(unknown, known)}
            )
        return values


def require_effect(section: Section, keys: Sequence[str], needs: str) -> None:
    """Refuse ``keys`` that are written, where the key that they need is not there.

    A written key is meant to have an effect; null, which asks for nothing, may be written.
    ValueError with the keys and with ``needs``: "theta, dt: no effect without type: ou".
    """
    written = [
        key for key in keys if key in section.model_fields_set and getattr(section, key) is not None
    ]
    if written:
        raise ValueError(f"{', '.join(written)}: no effect without {needs}")


class ConfigBase:
    """Made once from the YAML's ``algorithm:`` section, at the edge.

    ``__init__`` gets the section without the keys that find the algorithm (``path``, ``name``).
    It raises ValueError for a key that it cannot use, with a message that names it; pydantic's
    ValidationError is one.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Keep the section as it is."""
        self.config = config

    def observation_space(self) -> Space | None:
        """Return the space of one environment's states (RLX version 2); None if any will do."""
        return None

    def action_space(self) -> Space | None:
        """Return the space of one environment's actions; None if it is not known."""
        return None

    def misfit_of(self, agents: Sequence[AgentName]) -> str | None:
        """Return in words why no environment with these ``agents`` can be learnt in, if so.

        An environment whose agents have no names has one, ``UNNAMED_AGENT``.
        """
        return None

    def uses_gpu(self) -> bool:
        """Return whether workers use the GPU; ``--workers auto`` then starts one for all."""
        return False

    def units(self) -> Mapping[str, Any]:
        """Return the units of the actions that are learnt and stored, as JSON values.

        The files of a learner or a replay with other units are refused. By default the units are
        the environment's own, and the result is empty.
        """
        return {}

    def describe_policy(self, vector: FloatVector) -> Any:
        """Return all that actions depend on, for the parameters of a checkpoint, float32 [size].

        That is a ``relaax.learning.described_policy.DescribedPolicy``, which ``relaax-export``
        writes into files; None, by default, where it is not known.
        """
        return None

    def learns(self) -> bool:
        """Return whether anything is learnt."""
        return True

    def has_learner(self) -> bool | None:
        """Return whether a process of its own learns; None: where the package exports a learner.

        An algorithm that can do both, and exports both, says here which of them is configured.
        """
        return None

    def learner_count(self) -> int:
        """Return how many processes learn, where processes of their own do."""
        return 1

    def scales_states(self) -> bool:
        """Return whether states are brought to one size before they are learnt from."""
        return False

    def largest_reward(self) -> float:
        """Return the size up to which a reward is one that values are learnt of well."""
        return 1e3

    def doubts(self) -> Sequence[str]:
        """Return sentences about settings that are allowed, and hardly meant.

        ``relaax-train`` shows them before it starts. A mistake is a ValueError of ``__init__``.
        """
        return ()

    def rollout_steps(self) -> int:
        """Return how many steps of an environment a worker keeps until it learns from them."""
        return 1
