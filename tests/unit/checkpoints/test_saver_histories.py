"""Random histories of saves, failures, damages, kills and starts: what is whole is not lost."""

import random

import pytest
from checkpoints import checkpoint, data_file, restored_step, steps

from relaax.checkpoints import CheckpointSaver, DirectoryStore
from relaax.errors import CheckpointError


class Killed(BaseException):
    pass


class Unreliable(DirectoryStore):
    """Of its changes some fail, and at some the process dies."""

    def __init__(self, directory, chance):
        super().__init__(directory)
        self.chance = chance

    def _change(self):
        luck = self.chance.random()
        if luck < 0.05:
            raise Killed
        if luck < 0.2:
            raise CheckpointError("the disk is full")

    def put(self, name, data):
        self._change()
        super().put(name, data)

    def delete(self, name):
        self._change()
        super().delete(name)

    def rename(self, name, new_name):
        self._change()
        super().rename(name, new_name)


def damage(directory, step, chance):
    path = directory / f"cp-{step}.json"
    if chance.random() < 0.5:
        path = data_file(directory, step)
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content))])


@pytest.mark.parametrize("seed", range(10))
def test_the_newest_whole_checkpoint_is_there_after_all_that_happens(tmp_path, seed, caplog):
    chance = random.Random(seed)
    keep = chance.randint(1, 3)
    #: The steps whose saves were reported, or may have succeeded, and that were not damaged.
    whole: set[int] = set()
    reported = step = 0
    one = None
    for _ in range(60):
        if one is None:
            one = CheckpointSaver(Unreliable(tmp_path, chance), keep, chance.randint(0, 1))
            found = one.restore_latest()
            step = 0 if found is None else found.global_t
            assert step >= reported
        act = chance.random()
        if act < 0.15:
            one = None  # it is stopped, and started again
        elif act < 0.3 and len(whole & set(steps(tmp_path))) > 1:
            victim = chance.choice(sorted(whole & set(steps(tmp_path))))
            damage(tmp_path, victim, chance)
            whole.discard(victim)
            reported = max((each for each in whole if each in steps(tmp_path)), default=0)
        else:
            step += chance.randint(1, 5)
            save = chance.choice([one.save, one.save, one.save_until_next])
            try:
                save(checkpoint(step))
                reported = step
            except CheckpointError:
                pass
            except Killed:
                one = None
            if restored_step(tmp_path) == step:
                whole.add(step)
                reported = step
        assert (restored_step(tmp_path) or 0) >= reported
        if not reported:
            continue
        assert restored_step(tmp_path) in whole
