"""Parameter servers as the managers of populations see them."""

import contextlib

from processes import free_port

from relaax.net.guarded_server import GuardedServer
from relaax.populations.service import method_handlers
from relaax.populations.stub import MemberStub


@contextlib.contextmanager
def served(membership, database=None):
    """Yield the client of a membership at a port."""
    with contextlib.ExitStack() as resources:
        server = GuardedServer(4, [method_handlers(membership, database)])
        server.start(f"localhost:{(port := free_port())}")
        resources.callback(lambda: server.stop(0).wait())
        stub = MemberStub(f"localhost:{port}", call_timeout_s=5)
        resources.callback(stub.close)
        yield stub


def report(membership, *returns, version=10, streams="population"):
    """Report episodes of a version, as actors do."""
    for each in returns:
        membership.note(f"{streams}/episode_length", version, 1.0)
        membership.note(f"{streams}/episode_return", version, each)
