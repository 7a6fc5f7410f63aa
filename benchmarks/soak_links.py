"""TCP links that can be cut: what connects to one reaches what is behind it, unless it is cut."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Coroutine
from enum import Enum
from typing import Any

#: How much of a connection is passed on at once.
_CHUNK_BYTES = 1 << 16

#: How often one byte passes a link that drips.
_DRIP_S = 1.0

_DEADLINE_S = 10.0

#: More turns of the loop than what has been scheduled leads to.
_TURNS = 20


class Cut(Enum):
    """How a link is cut."""

    #: Connections break, and new ones are refused.
    REFUSED = "refused"
    #: Connections stay, and nothing passes; what was sent meanwhile passes when that is over.
    BLACK_HOLE = "black hole"
    #: One byte passes in a second, in each direction of each connection.
    DRIP = "one byte a second"


class Links:
    """All links, on a thread of their own."""

    def __init__(self) -> None:
        self._links: list[Link] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="links", daemon=True)
        self._thread.start()

    def add(self, url: str, behind: str) -> "Link":
        """Listen at ``url`` for what is to reach ``behind``."""
        link = Link(url, behind, self)
        self.run(link.open())
        self._links.append(link)
        return link

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` on the thread of the links, and wait for it."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_DEADLINE_S)

    def close(self) -> None:
        """End the thread, and with it all connections."""
        self.run(self._end_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_DEADLINE_S)
        self._loop.close()

    async def _end_all(self) -> None:
        """Break all connections, those that have just come, too."""
        for link in self._links:
            await link.shut()
        await _take_turns()
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for link in self._links:
                await link.shut()
        await _take_turns()


async def _take_turns() -> None:
    """Let what has been accepted begin, and what has been broken end, in later turns."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


class Link:
    """A link, which is cut and healed by another thread."""

    def __init__(self, url: str, behind: str, links: Links) -> None:
        self.url = url
        self.behind = behind
        self._links = links
        self._cut: Cut | None = None
        # Not a server of asyncio: one that is closed drops what it has just accepted, open.
        self._listener: socket.socket | None = None
        #: Both ends of each connection, until they have been closed.
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        #: Set while bytes pass, of what was cut too: the moment when it is healed wakes all.
        self._passes = asyncio.Event()
        self._passes.set()

    def cut(self, how: Cut) -> None:
        """Cut it."""
        self._links.run(self._begin_cut(how))

    def heal(self) -> None:
        """Let all pass again."""
        self._links.run(self._end_cut())

    async def open(self) -> None:
        """Listen."""
        host, _, port = self.url.rpartition(":")
        self._listener = socket.create_server((host, int(port)))
        self._listener.setblocking(False)
        asyncio.get_running_loop().add_reader(self._listener, self._accept, self._listener)

    async def shut(self) -> None:
        """Listen no more, and break all connections."""
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = None
        for writer in list(self._writers):
            writer.transport.abort()

    async def _begin_cut(self, how: Cut) -> None:
        self._cut = how
        self._passes.clear()
        if how is Cut.REFUSED:
            await self.shut()

    async def _end_cut(self) -> None:
        self._cut = None
        self._passes.set()
        if self._listener is None:
            await self.open()

    def _accept(self, listener: socket.socket) -> None:
        try:
            sock, _ = listener.accept()
        except OSError:  # it has gone again
            return
        sock.setblocking(False)
        task = asyncio.get_running_loop().create_task(self._serve(sock))
        self._tasks.add(task)  # the loop itself keeps no task alive
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, sock: socket.socket) -> None:
        host, _, port = self.behind.rpartition(":")
        reader, writer = await asyncio.open_connection(sock=sock)
        self._writers.add(writer)
        try:
            behind_reader, behind = await asyncio.open_connection(host, int(port))
            self._writers.add(behind)
            try:
                await asyncio.gather(self._pass(reader, behind), self._pass(behind_reader, writer))
            finally:
                await self._end(behind)
        except OSError:  # either end has broken it: so does this
            writer.transport.abort()
        finally:
            await self._end(writer)

    async def _end(self, writer: asyncio.StreamWriter) -> None:
        """Close an end of a connection, and forget it when all has been sent."""
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        self._writers.discard(writer)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(_CHUNK_BYTES):
            await self._pass_chunk(chunk, writer)
        while self._cut is Cut.BLACK_HOLE:
            await self._passes.wait()
        with contextlib.suppress(OSError):
            writer.write_eof()

    async def _pass_chunk(self, chunk: bytes, writer: asyncio.StreamWriter) -> None:
        while chunk and not self._passes.is_set():
            if self._cut is Cut.DRIP:
                writer.write(chunk[:1])
                chunk = chunk[1:]
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._passes.wait(), _DRIP_S)
        writer.write(chunk)
        await writer.drain()
