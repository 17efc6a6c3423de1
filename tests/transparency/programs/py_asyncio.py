"""Event loop: sockets, subprocesses, signals, timers, executor threads."""
import asyncio
import os
import signal


async def echo(reader, writer):
    while data := await reader.readline():
        writer.write(data.upper())
        await writer.drain()
    writer.close()


async def client(port, name):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    lines = []
    for i in range(20):
        writer.write(f"{name} {i}\n".encode())
        lines.append((await reader.readline()).decode().strip())
    writer.close()
    return lines[-1]


async def main():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print("echoed", await asyncio.gather(*(client(port, f"client{i}") for i in range(10))))
    server.close()
    process = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    print("child", await process.communicate(b"text"), process.returncode)
    loop = asyncio.get_running_loop()
    got = loop.create_future()
    loop.add_signal_handler(signal.SIGUSR1, got.set_result, "USR1")
    os.kill(os.getpid(), signal.SIGUSR1)
    print("signal", await got)
    print("executor", await loop.run_in_executor(None, sum, range(1000)))
    try:
        await asyncio.wait_for(asyncio.sleep(30), 0.05)
    except asyncio.TimeoutError:
        print("timeout")


asyncio.run(main())
