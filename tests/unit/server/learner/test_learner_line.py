"""What a learner says in the live line of its group."""

from relaax.server.learner.main import LearnerLine
from relaax.telemetry.live_lines import LiveLine


class Training:
    def __init__(self, iteration=0, actions=0):
        self.now, self.iteration, self.actions = 0.0, iteration, actions
        self.line = LearnerLine(lambda: self.iteration, self.stats, lambda: self.now)

    def stats(self):
        return {"actions stored": self.actions, "steps": self.actions + 5.0, "capacity": 1e6}

    def after(self, seconds, updates, actions):
        self.now += seconds
        self.iteration += updates
        self.actions += actions
        return str(LiveLine("learner", tuple(self.line.figures())))


def test_it_says_how_fast_it_learns_and_how_full_its_buffer_is():
    training = Training()
    assert training.after(2.0, 500, 1000) == (
        "learner: updates 500 | updates/s 250 | updates per step 0.50 | "
        "steps stored 1,005 of 1,000,000"
    )
    assert training.after(2.0, 1500, 1000) == (
        "learner: updates 2,000 | updates/s 750 | updates per step 1 | "
        "steps stored 2,005 of 1,000,000"
    )


def test_before_the_first_step_there_is_no_ratio():
    assert Training().after(2.0, 0, 0) == (
        "learner: updates 0 | updates/s 0 | steps stored 5 of 1,000,000"
    )


def test_a_learner_that_was_restored_counts_the_ratio_from_its_start():
    training = Training(iteration=10_000)
    assert "updates per step 2 |" in training.after(1.0, 200, 100)


def test_where_the_replay_is_elsewhere_the_line_is_about_the_learner_alone():
    now = [0.0]
    line = LearnerLine(lambda: int(10 * now[0]), dict, lambda: now[0])
    now[0] = 2.0
    assert str(LiveLine("learner", tuple(line.figures()))) == "learner: updates 20 | updates/s 10"
