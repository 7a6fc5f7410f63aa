"""Stages of environments that become harder, and when the next one begins; SRL's classes."""

import math
from enum import Enum
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    field_validator,
)

#: The version that was evaluated, among the fields of conditions.
VERSION = "version"


def of_enum(kind: type[Enum], value: Any) -> Any:
    """Return the member that a file names."""
    if not isinstance(value, str):
        return value
    if value not in kind.__members__:
        raise ValueError(f"must be one of {', '.join(kind.__members__)}, is {value!r}")
    return kind.__members__[value]


class _Part(BaseModel):
    """Its types must fit exactly, and it has no other keys: a ``Section`` without numpy."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SimpleBoundArgs(_Part):
    """A mean is above one limit and below another; None: without this limit."""

    field: str
    lower_limit: float | None = None
    upper_limit: float | None = None


class ConvergedArgs(_Part):
    """The means of the last versions are as good as the same."""

    value_field: str
    #: Counts steps: the number of the version.
    step_field: str = VERSION
    #: Values of earlier steps are left out.
    warmup_step: NonNegativeFloat = 0.0
    #: Values of so many steps are compared.
    duration: PositiveFloat = 100.0
    #: The part of the values that counts; the smallest and the largest ones are left out.
    confidence: Annotated[float, Field(gt=0, le=1)] = 0.9
    #: How far apart the smallest and the largest of them may be.
    threshold: NonNegativeFloat = 1e-2


class Condition(_Part):
    """A condition of the means of an evaluated version."""

    class Type(Enum):
        """A mean is within limits, or does not change any more."""

        SimpleBound = "SimpleBound"
        Converged = "Converged"

    type_: Annotated[Type, BeforeValidator(lambda value: of_enum(Condition.Type, value))]
    args: dict[str, Any] = Field(default_factory=dict)

    @property
    def typed_args(self) -> SimpleBoundArgs | ConvergedArgs:
        """Its arguments with their types."""
        is_bound = self.type_ is Condition.Type.SimpleBound
        return (SimpleBoundArgs if is_bound else ConvergedArgs).model_validate(self.args)

    def model_post_init(self, context: Any) -> None:
        """Refuse arguments that the type does not have."""
        args = self.typed_args
        if isinstance(args, SimpleBoundArgs):
            lower, upper = args.lower_limit, args.upper_limit
            if lower is None and upper is None:
                raise ValueError("a SimpleBound needs lower_limit, upper_limit or both")
            if (-math.inf if lower is None else lower) >= (math.inf if upper is None else upper):
                raise ValueError(f"no number is above {lower:g} and below {upper:g}")


class Curriculum(_Part):
    """Stages that follow one another when all conditions hold of an evaluated version.

    An actor worker names it, by ``name`` alone; its evaluation manager has the rest.
    """

    class Type(Enum):
        """The order of the stages: as they are written."""

        Linear = "Linear"

    type_: Annotated[Type, BeforeValidator(lambda value: of_enum(Curriculum.Type, value))]
    name: Annotated[str, Field(min_length=1)]
    stages: Annotated[
        list[Annotated[str, Field(min_length=1)]],
        BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
        Field(min_length=1),
    ] = Field(default_factory=lambda: ["training"])
    conditions: list[Condition] = Field(default_factory=list)

    @field_validator("stages")
    @classmethod
    def _differ(cls, value: list[str]) -> list[str]:
        if len(set(value)) < len(value):
            raise ValueError(f"stages have different names, and not {', '.join(value)}")
        return value
