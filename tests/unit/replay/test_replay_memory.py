"""A replay takes its memory when it starts, and says how much that is."""

import numpy as np
import pytest
from replay_cases import SCHEMA

from relaax.errors import ConfigurationError
from relaax.processes.available_memory import AvailableMemory
from relaax.replay.process.replay_memory import replay_in_memory
from relaax.replay.schema import Column, Schema
from relaax.replay.specs import ReplaySpec, TableSpec
from relaax.replay.views import Transitions

SPEC = ReplaySpec(SCHEMA, 2_000_000, {"all": TableSpec(Transitions())})


class Machine(AvailableMemory):
    """A machine with so much memory left."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    def bytes(self) -> int:
        return self.left


def made(spec, left, **options):
    return replay_in_memory(
        spec, np.random.default_rng(0), 60.0, available=Machine(left), **options
    )


def test_the_needed_memory_is_printed_beside_the_available(capsys):
    spec = ReplaySpec(SCHEMA, 2000, SPEC.tables)
    assert len(made(spec, 2**30)) == 0
    said = "replay: 2,000 steps of 20 bytes take 1 MiB of memory; 1,024 MiB are available\n"
    assert capsys.readouterr().out == said


@pytest.mark.parametrize(
    ("options", "left", "reason"),
    [
        ({}, 2**27, "2,000,000 steps of 20 bytes take 226 MiB of memory; 128 MiB are available"),
        ({"is_saved": True}, 2**28, "and their copies while they are saved, take 676 MiB"),
    ],
)
def test_a_replay_that_does_not_fit_is_refused_with_both_values(options, left, reason):
    with pytest.raises(ConfigurationError, match=f"replay_size: .*{reason}.*; lower it"):
        made(SPEC, left, **options)


OPEN = ReplaySpec(
    Schema({"observation": Column(np.dtype(np.uint8), (2**10,), is_open=True)}),
    2**16,
    {"all": TableSpec(Transitions())},
)


def test_images_that_come_as_floats_are_refused_where_only_bytes_fit(capsys):
    machine = Machine(2**27)
    replay = replay_in_memory(OPEN, np.random.default_rng(0), 60.0, available=machine)
    assert "take 71 MiB of memory; 128 MiB are available; if images come as float32, 263 MiB" in (
        capsys.readouterr().out
    )
    machine.left = 2**26  # that of bytes was taken
    floats, bytes_ = (OPEN.schema.settled({"observation": np.dtype(kind)}) for kind in ("f4", "u1"))
    (reason,) = replay.open_writer("w", floats)
    assert "replay_size: 65,536 steps of this type take 192 MiB of memory beside" in reason
    assert "64 MiB are available" in reason
    assert replay.open_writer("w", bytes_) == []
    assert "must be uint8" in replay.open_writer("x", floats)[0]


def test_room_for_few_environments_is_printed_and_room_for_no_environment_is_refused(capsys):
    made(ReplaySpec(SCHEMA, 40, {"all": TableSpec(Transitions(4))}), 2**30)
    assert "40 steps are learnt from of 8 environments that play at once" in capsys.readouterr().out
    with pytest.raises(ConfigurationError, match="replay_size: 4 steps are too few"):
        made(ReplaySpec(SCHEMA, 4, {"all": TableSpec(Transitions(4))}), 2**30)
