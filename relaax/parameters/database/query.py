"""MongoDB queries for versions, checked: the same ones for all stores of metadata.

Stages that write (``$out``) and operators that run code (``$where``) are refused, since queries
come from other processes.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

from relaax.errors import ConfigurationError, did_you_mean_one_of

#: A stage, such as ``{"$match": {"md.win_rate": {"$gt": 0.8}}}``.
Stage: TypeAlias = Mapping[str, Any]

#: One stage, or several.
Query: TypeAlias = Stage | Sequence[Stage]

STAGES = ("$match", "$sort", "$limit", "$skip", "$sample")

#: The last stage of a query, which stores do not know: one of the versions is drawn in proportion
#: to a mean.
DRAW = "$draw"

#: Between conditions.
_LOGIC = ("$and", "$or", "$nor")

#: Within the condition of a field.
_OPERATORS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$not")

#: Fields beside the means, which begin with ``md.``.
_OWN_FIELDS = ("version", "time_created", "last_updated", "count")


def stages_of(query: Query, means: Collection[str]) -> list[Stage]:
    """Return the stages of a query, each condition with one operator.

    ``means`` are the names that the metadata have. ConfigurationError says what is wrong, and what
    was perhaps forgotten: a dollar sign, or ``md.`` (seed 002, "Troubleshooting").
    """
    try:
        return [_stage(each, means) for each in ([query] if isinstance(query, Mapping) else query)]
    except ConfigurationError as error:
        raise ConfigurationError(f"the query {query!r}: {error}") from None


def divided(query: Query) -> tuple[Query, str | None]:
    """Return a query without its stage ``$draw``, and the name of the mean that this one has.

    The name may be one that no version has yet. ConfigurationError for a stage that is not the last
    one, and for one without a mean.
    """
    stages = [query] if isinstance(query, Mapping) else list(query)
    drawing = [isinstance(each, Mapping) and DRAW in each for each in stages]
    if not any(drawing):
        return query, None
    if drawing.index(True) != len(stages) - 1 or len(stages[-1]) != 1:
        raise ConfigurationError(f"the query {query!r}: {DRAW} is the last stage, and has no other")
    field = stages.pop()[DRAW]
    if not isinstance(field, str) or not field.startswith("md.") or len(field) == len("md."):
        raise ConfigurationError(f"the query {query!r}: {DRAW} has md.NAME, not {field!r}")
    return stages, field.removeprefix("md.")


def _stage(stage: Any, means: Collection[str]) -> Stage:
    if not isinstance(stage, Mapping) or len(stage) != 1:
        raise ConfigurationError(
            f"a stage has one operator, is {stage!r}. Write several stages as a list"
        )
    ((name, value),) = stage.items()
    _require_operator(name, (*STAGES, DRAW), "stages")
    if name == "$match":
        return {name: _conditions(value, means)}
    if name == "$sort":
        _require_mapping(value, "$sort")
        for field, direction in value.items():
            _require_field(field, means)
            if direction not in (1, -1):
                raise ConfigurationError(f"{field} is sorted by 1 or -1, not by {direction!r}")
    else:
        _require_count(name, value)
    return {name: value}


def _require_count(name: str, value: Any) -> None:
    if name == "$sample":
        _require_mapping(value, name)
        if set(value) != {"size"}:
            raise ConfigurationError(f'$sample must be {{"size": NUMBER}}, is {value!r}')
        value = value["size"]
    least = 0 if name == "$skip" else 1
    if type(value) is not int or value < least:
        raise ConfigurationError(f"{name} must be a number of {least} or more, is {value!r}")


def _conditions(conditions: Any, means: Collection[str]) -> Stage:
    """Return conditions with one operator each, as libraries that read them agree on them."""
    _require_mapping(conditions, "conditions")
    found: list[Stage] = []
    for name, value in conditions.items():
        if name.startswith("$") or f"${name}" in (*_LOGIC, *_OPERATORS):
            _require_operator(name, _LOGIC, "operators in the place of a field")
            found.append({name: [_conditions(each, means) for each in _alternatives(name, value)]})
            continue
        _require_field(name, means)
        found += _of_field(name, value)
    return {"$and": found} if found else {}


def _of_field(field: str, value: Any) -> list[Stage]:
    found: list[Stage] = []
    for operator, operand in (value if isinstance(value, Mapping) else {"$eq": value}).items():
        _require_operator(operator, _OPERATORS, "operators")
        if operator == "$not":
            _require_mapping(operand, "$not")
            found.append({"$nor": [{"$and": _of_field(field, operand)}]})
            continue
        _require_operand(operator, operand)
        found.append({field: {operator: operand}})
    if not found:
        raise ConfigurationError(f"{field} has no condition")
    return found


def _require_operand(operator: str, operand: Any) -> None:
    if operator == "$exists":
        if not isinstance(operand, bool):
            raise ConfigurationError(f"$exists is true or false, not {operand!r}")
        return
    for number in operand if operator in {"$in", "$nin"} and _is_list(operand) else [operand]:
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise ConfigurationError(f"{operator} compares numbers, not {operand!r}")


def _alternatives(name: str, value: Any) -> Sequence[Any]:
    if not _is_list(value) or not value:
        raise ConfigurationError(f"{name} has a list of conditions, not {value!r}")
    return list(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _require_mapping(value: Any, of: str) -> None:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ConfigurationError(f"{of} must be a dict with names, is {value!r}")


def _require_operator(name: str, known: Sequence[str], kind: str) -> None:
    if f"${name}" in known:
        raise ConfigurationError(f"did you forget the dollar sign of ${name}?")
    if name not in known:
        meant = did_you_mean_one_of(name, known)
        raise ConfigurationError(f"{name!r} is not among the {kind} {', '.join(known)}{meant}")


def _require_field(field: str, means: Collection[str]) -> None:
    known = [*_OWN_FIELDS, *(f"md.{name}" for name in sorted(means))]
    # Before the first update of metadata it is not known which names they will have.
    if field in known or (field.startswith("md.") and not means):
        return
    if f"md.{field}" in known:
        raise ConfigurationError(f"did you forget 'md.' before {field!r}?")
    raise ConfigurationError(f"there is no field {field!r}; fields are {', '.join(known)}")
