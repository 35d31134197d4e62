"""A TCP proxy on loopback that lets the bytes of a server arrive late, as over a slow or congested path.

Latency, not throughput: every piece leaves `delay_s` after it came in, in order, and bytes to the server pass at once.
"""

import asyncio
import contextlib
import threading
from types import TracebackType
from typing import Self

_PIECE_BYTES = 64 * 2**10


class DelayingProxy:
    """`delay_s` may be changed at any time; it holds for what arrives from then on."""

    def __init__(self, host: str, port: int, *, delay_s: float):
        self.delay_s = delay_s
        self._target = (host, port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._connections: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def url(self) -> str:
        """Of a TLS server behind the proxy; its certificate must name 127.0.0.1."""
        return f"https://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """May be called twice."""
        if not self._thread.is_alive():
            return
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(5)

    async def _close(self) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._connections.add(task)
        try:
            server_reader, server_writer = await asyncio.open_connection(*self._target)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._pass_on(reader, server_writer))
                    both.create_task(self._pass_late(server_reader, writer))
            finally:
                server_writer.close()
        except* OSError:
            pass  # either side hung up: so does the other
        finally:
            writer.close()
            self._connections.discard(task)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(_PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
        with contextlib.suppress(OSError):
            writer.write_eof()

    async def _pass_late(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        late: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                due, piece = await late.get()
                await asyncio.sleep(max(0.0, due - self._loop.time()))
                if not piece:
                    writer.close()
                    return
                writer.write(piece)
                await writer.drain()

        async with asyncio.TaskGroup() as both:
            both.create_task(deliver())
            while piece := await reader.read(_PIECE_BYTES):
                late.put_nowait((self._loop.time() + self.delay_s, piece))
            late.put_nowait((self._loop.time() + self.delay_s, b""))
