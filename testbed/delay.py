"""A slow line in user space, for kernels without netem: delay.py SECONDS TARGET ADDRESS… (port 22 on both sides)."""

import asyncio
import sys

PORT = 22


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    """Pass bytes on, each as late as the line is long, in their order."""
    clock = asyncio.get_running_loop().time
    line: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(4096)

    async def take() -> None:
        data = b"-"
        while data:
            try:
                data = await reader.read(262144)
            except ConnectionError:
                data = b""
            await line.put((clock() + seconds, data))

    async def give() -> None:
        while True:
            due, data = await line.get()
            await asyncio.sleep(max(0.0, due - clock()))
            if not data:
                writer.close()
                return
            writer.write(data)
            await writer.drain()

    await asyncio.gather(take(), give(), return_exceptions=True)


async def main(seconds: float, target: str, addresses: list[str]) -> None:
    """Listen on the addresses and join every caller to the target."""

    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(target, PORT)
        except OSError:
            writer.close()
            return
        await asyncio.gather(carry(reader, far_writer, seconds), carry(far_reader, writer, seconds))

    async with await asyncio.start_server(join, addresses, PORT) as server:
        await server.serve_forever()


asyncio.run(main(float(sys.argv[1]), sys.argv[2], sys.argv[3:]))
