"""Ports of a training on this machine."""

import socket
from pathlib import Path

import pytest
from processes import free_port

from relaax.errors import ConfigurationError
from relaax.launcher.described import described
from relaax.launcher.ports import free_pair, require_free_ports, reserved
from relaax.launcher.ports import free_port as port_near

YAML = """\
relaax-rlx-server: {{--bind: "127.0.0.1:{port}", --http-bind: "127.0.0.1:{http}"}}
algorithm: {{name: da3c, action_size: 2, state_size: [4]}}
"""


@pytest.fixture(name="lines")
def _lines(tmp_path):
    path = tmp_path / "t.yaml"
    ports = {"port": free_port(), "http": free_port()}
    path.write_text(YAML.format(**ports))
    return {
        "rlx": f"exec relaax-rlx-server --config {path}",
        "later": "exec relaax-rlx-server --config $LATER",
        "env": f"exec python play.py --rlx-server localhost:{ports['port']}",
    }, ports


@pytest.mark.parametrize("option", ["port", "http"])
def test_a_port_that_is_taken_is_named_with_its_line_and_who_has_it(lines, option):
    commands, ports = lines
    processes = described(commands)
    require_free_ports(processes, Path("Procfile"))
    with (
        socket.create_server(("127.0.0.1", ports[option])),
        pytest.raises(ConfigurationError) as refused,
    ):
        require_free_ports(processes, Path("Procfile"))
    said = str(refused.value)
    assert said.startswith(
        f"port {ports[option]}, at which the line 'rlx' of Procfile is to listen, is taken by "
        "process "
    )
    assert "pytest" in said
    assert ": stop that, or give this training other ports" in said


def test_the_first_two_ports_that_are_free_are_given():
    first = free_port()
    with socket.create_server(("127.0.0.1", first)):
        pair = free_pair(first)
    assert pair > first
    assert (pair - first) % 2 == 0


def test_a_port_is_the_one_that_is_written_or_the_next():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        other = port_near("127.0.0.1", port, ())
        assert other > port
        assert port_near("127.0.0.1", port, (other,)) > other
    assert port_near("127.0.0.1", port, ()) == port


def test_a_port_is_reserved_for_one_launcher_until_it_ends():
    port = free_port()
    holder = reserved(port)
    assert holder is not None
    assert reserved(port) is None
    holder.close()
    again = reserved(port)
    assert again is not None
    again.close()
