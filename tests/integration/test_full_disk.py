"""The disk of all that is saved is full for a while, or cannot be written to at all."""

from pathlib import Path

import pytest
from operators import figure
from processes import SMALL_SAC, Training, free_port, wait_for
from small_disks import NEEDS_MOUNTS, SmallDisk

from relaax.checkpoints import CheckpointSaver, DirectoryStore
from relaax.parameters import Bridge

pytestmark = [pytest.mark.integration, NEEDS_MOUNTS]

COMMANDS = {
    "relaax-parameter-server": "(no checkpoint was saved in|what was published is not saved: )",
    "relaax-replay-server": "the stored steps were not saved",
    "relaax-learner": "no checkpoint of the learner was saved",
}
READY = ["global step is ", "storing what is delivered at ", "learning from "]

FAILURES = "relaax_checkpoint_failures_total"


def newest(directory: Path) -> int:
    """The step of the newest checkpoint that is whole; -1 without one."""
    if not directory.is_dir():
        return -1
    found = CheckpointSaver(DirectoryStore(directory, is_only_read=True)).restore_latest()
    return -1 if found is None else found.global_t


def test_a_training_goes_on_while_the_disk_is_full_and_saves_when_there_is_room(
    training: Training, bridge: Bridge
):
    disk = SmallDisk(training, "size=4m")
    replay = f"127.0.0.1:{free_port()}"
    operators = [f"127.0.0.1:{free_port()}" for _ in COMMANDS]
    kinds = ("checkpoints", "replay", "learner")
    places = [disk.directory / kind for kind in kinds]
    saving = [
        {"checkpoint-dir": str(place), "checkpoint-interval": 0.5, "http-bind": at}
        for place, at in zip(places, operators, strict=True)
    ]
    training.configure(
        {**SMALL_SAC, "replay_size": 2000},
        saving[0],
        learner={"replay-servers": [replay], **saving[2]},
        replay_server={"bind": replay, **saving[1]},
    )
    servers = []
    for command, ready in zip(COMMANDS, READY, strict=True):
        servers.append(disk.start(command))
        servers[-1].says(ready)
    training.start_rlx_server()
    training.start_environments(1, env="Pendulum-v1", is_paced=True)

    own = replay.replace(":", "-")
    seen = [disk.seen_from_outside / kind for kind in ("checkpoints", f"replay/{own}", "learner")]
    for place in seen:
        wait_for(lambda place=place: newest(place) >= 0, f"a checkpoint in {place}")

    def iteration() -> int:
        info = bridge.pull().info
        return info.iteration if info else 0

    disk.fill()
    for server, said in zip(servers, COMMANDS.values(), strict=True):
        server.says(said)
    for at in operators:
        wait_for(lambda at=at: figure(at, FAILURES) > 0, f"a failure at {at}")
    before = iteration()
    wait_for(lambda: iteration() > before + 20, "learning on a full disk")
    saved = [newest(place) for place in seen]
    assert min(saved) >= 0

    servers[2].kill()
    disk.start("relaax-learner").says(r"restored step [\d,]+ from")

    disk.empty()
    for place, step in zip(seen, saved, strict=True):
        wait_for(lambda place=place, step=step: newest(place) > step, f"a save in {place}")
    assert all(server.is_running() for server in servers[:2])


def test_a_directory_that_cannot_be_written_to_is_refused_when_a_server_starts(training: Training):
    disk = SmallDisk(training, "ro")
    server = disk.start("relaax-parameter-server", "--checkpoint-dir", str(disk.directory))
    assert server.wait() == 2
    assert f"cannot use the directory {disk.directory}: " in server.output()
    assert "Read-only file system" in server.output()
