import asyncio
import os

import aiohttp
import peer
from job import Job


async def fetch(base, job):
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=1.0)) as session:
        async def one(number):
            async with session.get(f"{base}/{job.name}/{number:05d}.bin") as answer:
                answer.raise_for_status()
                return await answer.read()

        return await asyncio.gather(*(one(number) for number in range(3)))


def fault(job):
    return asyncio.run(fetch(os.environ.get("STORE") or f"http://{peer.start(job.how)}", job))


Job().run(fault)
