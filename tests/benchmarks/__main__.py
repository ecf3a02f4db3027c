"""``python -m tests.benchmarks``: start, typing, streaming, a long conversation; ratios of one run."""

from __future__ import annotations

import asyncio

from tests.benchmarks import beginning, start, transcript, typing

if __name__ == "__main__":
    start.main()
    asyncio.run(typing.main())
    asyncio.run(transcript.main())
    asyncio.run(beginning.main())
