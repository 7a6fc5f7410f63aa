"""What a replay server does from time to time."""

from itertools import count
from threading import Event

from relaax.processes.periodic_tasks import Task, TasksThread, run_tasks


class Stop:
    """Is set after so many questions."""

    def __init__(self, after):
        self.left = after

    def wait(self, timeout=None):
        self.left -= 1
        return self.left < 0


def run(after, *tasks, is_over=lambda: False):
    moments = count()
    run_tasks(tasks, Stop(after), is_over, clock=lambda: next(moments))


def test_each_task_is_done_again_and_again_until_the_stop():
    done = []
    run(40, Task(10, lambda: done.append("often")), Task(70, lambda: done.append("seldom")))
    assert done.count("often") > 3
    assert done.count("seldom") == 1


def test_nothing_is_done_before_it_is_due():
    done = []
    run(5, Task(1000, lambda: done.append(1)))
    assert done == []


def test_the_end_of_the_training_ends_it():
    over = iter([False, False, True])
    done = []
    run(1000, Task(0, lambda: done.append(1)), is_over=lambda: next(over))
    assert len(done) == 2


def test_a_thread_of_tasks_is_over_when_the_task_that_goes_on_has_ended():
    begun, goes_on, ended = Event(), Event(), []

    def do():
        begun.set()
        goes_on.wait(10)
        ended.append(1)

    tasks = TasksThread([Task(0, do)], "tasks")
    assert begun.wait(10)
    tasks.stop()
    assert ended == []
    goes_on.set()
    tasks.close()
    assert ended == [1]
