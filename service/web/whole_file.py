"""Files that are sent while they are made, so that a client can always tell a whole one from a part of one."""

import tempfile
from collections.abc import AsyncIterator
from typing import IO

from anyio import to_thread
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

MEMORY_BYTES = 8 << 20  # beyond this, what waits for its length is on the disk
_PORTION_BYTES = 1 << 20


class StreamedFile(StreamingResponse):
    """A file in portions.

    If making it fails half-way, the connection is closed. In HTTP/1.1 its last portion is then missing, which is an
    error to every client. HTTP/1.0 has no portions, and the end of the connection would look like the end of the file:
    its clients, such as nginx without `proxy_http_version 1.1`, get the file once it is complete, with its length.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file."""
        if scope.get("http_version") != "1.0":
            await super().__call__(scope, receive, send)
            return
        with tempfile.SpooledTemporaryFile(MEMORY_BYTES) as file:
            async for portion in self.body_iterator:
                await to_thread.run_sync(file.write, portion.encode() if isinstance(portion, str) else portion)
            self.headers["content-length"] = str(file.tell())
            file.seek(0)
            self.body_iterator = _portions(file)
            await super().__call__(scope, receive, send)


async def _portions(file: IO[bytes]) -> AsyncIterator[bytes]:
    while portion := await to_thread.run_sync(file.read, _PORTION_BYTES):
        yield portion
