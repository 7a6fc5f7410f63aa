"""environments/Maze/main: the maze, its pictures and its rewards, played by hand."""

import importlib.machinery
import importlib.util
import random
from collections import deque
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

PROGRAM = Path(__file__).parents[3] / "environments" / "Maze" / "main"


@pytest.fixture(name="program", scope="module")
def _program() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("maze_program", str(PROGRAM))
    specification = importlib.util.spec_from_loader(loader.name, loader)
    assert specification is not None
    program = importlib.util.module_from_spec(specification)
    loader.exec_module(program)
    return program


def maze_of(program, seed=1, size=5, time_limit=100, maze_seed=1):
    return program.Maze(seed, size, time_limit, maze_seed)


def cells_of(picture):
    """The colours of the 5x5 cells of a picture, which are even."""
    cells = picture.reshape(5, 4, 5, 4, 3)
    assert (cells == cells[:, :1, :, :1]).all()
    return cells[:, 0, :, 0]


def steps_to_the_goal(is_free, goal):
    """By cell, as far as the goal can be reached."""
    steps, waiting = {goal: 0}, deque([goal])
    while waiting:
        row, column = waiting.popleft()
        for down, right in ((-1, 0), (0, -1), (1, 0), (0, 1)):
            cell = row + down, column + right
            if is_free[cell] and cell not in steps:
                steps[cell] = steps[row, column] + 1
                waiting.append(cell)
    return steps


@pytest.mark.parametrize("size", [2, 5, 9])
def test_a_maze_has_one_way_between_any_two_rooms(program, size):
    """``size`` squared rooms and one opening less: a tree, all of which is reached."""
    is_free = program.carved(size, np.random.default_rng(3))
    assert is_free.shape == (2 * size + 1, 2 * size + 1)
    assert is_free[1::2, 1::2].all()
    assert is_free.sum() == 2 * size**2 - 1
    assert len(steps_to_the_goal(is_free, (1, 1))) == is_free.sum()


def test_the_maze_is_drawn_by_a_seed_of_its_own(program):
    first, second = (maze_of(program, seed).restart() for seed in (5, 5))
    np.testing.assert_array_equal(first, second)
    assert first.dtype == np.uint8
    assert list(first.shape) == maze_of(program).observation_space["shape"] == [20, 20, 3]
    others = [maze_of(program, seed).restart() for seed in range(20)]
    assert any((other != first).any() for other in others)


def test_what_is_ahead_is_up_and_a_turn_turns_the_picture(program):
    maze, drawn = maze_of(program), random.Random(0)
    picture = maze.restart()
    for _ in range(200):
        if picture is None:
            picture = maze.restart()
        before, action = cells_of(picture), drawn.randrange(3)
        step = maze.apply(action)
        after = cells_of(step.state)
        if action == program.LEFT:
            np.testing.assert_array_equal(after, np.rot90(before, -1))
        elif action == program.RIGHT:
            np.testing.assert_array_equal(after, np.rot90(before))
        elif tuple(before[1, 2]) in (program.FLOOR, program.GOAL):
            np.testing.assert_array_equal(after[1:], before[:-1])
        else:
            np.testing.assert_array_equal(after, before)
        picture = None if step.is_terminated or step.is_truncated else step.state


def test_the_goal_alone_earns_a_reward_and_time_is_limited(program):
    maze, drawn, ends = maze_of(program, time_limit=60), random.Random(1), []
    for _ in range(100):
        maze.restart()
        for number in range(1, 61):
            step = maze.apply(drawn.randrange(3))
            at_goal = tuple(cells_of(step.state)[2, 2]) == program.GOAL
            assert step.reward == float(at_goal)
            assert step.is_terminated == at_goal
            assert step.is_truncated == (number == 60 and not at_goal)
            if step.is_terminated or step.is_truncated:
                ends.append(at_goal)
                break
    assert len(ends) == 100
    assert 0 < sum(ends) < 100
