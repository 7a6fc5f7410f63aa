"""How many workers of each kind an experiment has, and the resources of each."""

from typing import Annotated, Any

from pydantic import Field, NonNegativeInt, PositiveInt

from relaax.algorithm_base import Section


class Scheduling(Section):
    """The resources of one worker: cores, a GPU or a part of one (0.25 for four), megabytes."""

    cpu: PositiveInt = 1
    gpu: Annotated[float, Field(ge=0, le=1)] = 0.0
    mem: PositiveInt = 1024

    @classmethod
    def actor_worker_default(cls, **others: Any) -> "Scheduling":
        """Return the resources of an actor worker, with ``others`` in their place."""
        return cls(**{"cpu": 1, "gpu": 0, "mem": 1024, **others})

    @classmethod
    def policy_worker_default(cls, **others: Any) -> "Scheduling":
        """Return the resources of a policy worker, with ``others`` in their place."""
        return cls(**{"cpu": 2, "gpu": 0, "mem": 1024, **others})

    @classmethod
    def trainer_worker_default(cls, **others: Any) -> "Scheduling":
        """Return the resources of a trainer worker, with ``others`` in their place."""
        return cls(**{"cpu": 2, "gpu": 0, "mem": 1024, **others})

    @classmethod
    def buffer_worker_default(cls, **others: Any) -> "Scheduling":
        """Return the resources of a buffer worker, with ``others`` in their place."""
        return cls(**{"cpu": 1, "gpu": 0, "mem": 1024, **others})

    @classmethod
    def eval_manager_default(cls, **others: Any) -> "Scheduling":
        """Return the resources of an evaluation manager, with ``others`` in their place."""
        return cls(**{"cpu": 1, "gpu": 0, "mem": 1024, **others})

    @classmethod
    def population_manager_default(cls, **others: Any) -> "Scheduling":
        """Return the resources of a population's manager, with ``others`` in their place."""
        return cls(**{"cpu": 1, "gpu": 0, "mem": 1024, **others})


class TasksGroup(Section):
    """So many workers with the same resources."""

    count: NonNegativeInt
    scheduling: Scheduling


class ExperimentScheduling(Section):
    """The groups of each kind of worker, in the order of the workers' configurations."""

    actors: TasksGroup | list[TasksGroup] = Field(default_factory=list)
    policies: TasksGroup | list[TasksGroup] = Field(default_factory=list)
    trainers: TasksGroup | list[TasksGroup] = Field(default_factory=list)
    buffers: TasksGroup | list[TasksGroup] = Field(default_factory=list)
    eval_managers: TasksGroup | list[TasksGroup] = Field(default_factory=list)
    population_manager: TasksGroup | list[TasksGroup] = Field(default_factory=list)

    def groups(self, kind: str) -> list[TasksGroup]:
        """Return the groups of a kind of workers: ``actors`` for instance."""
        found = getattr(self, kind)
        return [found] if isinstance(found, TasksGroup) else list(found)

    def of_each(self, kind: str) -> list[Scheduling]:
        """Return the resources of each worker of a kind."""
        return [group.scheduling for group in self.groups(kind) for _ in range(group.count)]
