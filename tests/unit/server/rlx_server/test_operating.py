"""What operators are told of an RLX server that does nothing."""

from array import array
from types import SimpleNamespace

from relaax.algorithm_base import Evaluation, Values, Version
from relaax.server.exploitation import Trained
from relaax.server.rlx_server.tally import ACCESS_DENIED, Cell, Row, Tally
from relaax.server.rlx_server.watcher import (
    STUCK_S,
    access_denied,
    figures,
    figures_of_exploitation,
    not_ready,
    served,
    stuck,
)
from relaax.server.rlx_server.worker.process import EpisodeCount
from relaax.server.rlx_server.worker.settings import Exploitation
from relaax.telemetry.live_lines import LiveLine
from relaax.telemetry.metrics import EPISODE_REWARD


def test_a_server_that_has_not_looked_around_for_long_is_not_healthy():
    state = Row(memoryview(array("d", [0.0] * len(Cell))))
    state.note_now(Cell.LOOKED_AROUND)
    assert stuck(state) is None
    state[Cell.LOOKED_AROUND] -= STUCK_S + 1
    assert stuck(state) == "it has done nothing for 31 s"


def test_guesses_are_those_of_the_server_and_of_all_its_workers():
    tally = Tally()
    tally.state[Cell.ACCESS_DENIED] += 2
    number = tally.take()
    tally.row(number).add(ACCESS_DENIED, 3)
    tally.row(tally.take()).add(ACCESS_DENIED)
    tally.give_back(number)  # it has ended
    assert access_denied(tally) == 6


class TestExploitation:
    """Without a parameter server, the server says itself what its policy has earned."""

    EXPLOITATION = Exploitation(
        Trained(Values(Version(7), 1234, None), "here"), Evaluation.DETERMINISTIC
    )

    def tally(self, *returns):
        """Of a worker that has counted these episodes."""
        tally = Tally()
        metrics = EpisodeCount(tally.row(tally.take()))
        for each in returns:
            metrics.scalar(EPISODE_REWARD, each)
            metrics.scalar("episode/length", 5.0)
        return tally

    def shown(self, *returns, exploitation=EXPLOITATION):
        found = served(SimpleNamespace(exploitation=exploitation), self.tally(*returns))
        return str(LiveLine("RLX server", tuple(found)))

    def test_the_line_shows_episodes_and_their_mean_return(self):
        assert self.shown(10.0, -4.0) == "RLX server: episodes 2 | mean return 3"
        assert self.shown() == "RLX server: episodes 0"
        assert self.shown(exploitation=None) == "RLX server: "

    def test_the_figures_are_of_the_checkpoint_and_its_episodes(self):
        found = figures_of_exploitation(self.EXPLOITATION, self.tally(10.0, -4.0))
        values = [sample.value for metric in found for sample in metric.samples]
        assert values == [1234, 2, 6.0]

    def test_no_parameter_server_is_missed(self):
        tally = self.tally()
        tally.state[Cell.LISTENS] = 1
        tally.state[Cell.AVAILABLE] = 1.0
        assert list(not_ready(tally.state)) == ["the parameter server does not answer"]
        assert list(not_ready(tally.state, has_parameter_server=False)) == []
        names = {metric.name for metric in figures(tally, has_parameter_server=False)}
        assert "parameter_server_up" not in {name.removeprefix("relaax_") for name in names}
