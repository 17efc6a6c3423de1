"""Drives the program under test on a terminal of its own: Ctrl-C, Ctrl-Z with fg, window size."""
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

RUN = os.environ["RUN"].split()
os.environ["HISTFILE"] = ""


def spawn(argv):
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(argv[0], argv)
    return pid, fd


def read_until(fd, pattern, limit=20.0):
    """Output up to a match; ends the test with what came if the match does not come."""
    seen, end = b"", time.monotonic() + limit
    while not re.search(pattern, seen):
        ready = select.select([fd], [], [], max(0, end - time.monotonic()))[0]
        try:
            data = os.read(fd, 4096) if ready else b""
        except OSError:
            data = b""
        if not data:
            sys.exit(f"expected {pattern!r}, got {seen!r}")
        seen += data
    return seen.replace(b"\r", b"").decode()


def interrupt():
    pid, fd = spawn(["sh", "-c", " ".join(RUN) + " sh -c 'tty -s && echo tty; echo ready; sleep 30; echo not here'; echo status $?; trap : INT; "
                     + " ".join(RUN) + " cat; echo status $?"])
    print(read_until(fd, b"ready\r\n"))
    time.sleep(0.5)
    os.write(fd, b"\x03")
    # The shell that started it is interrupted as well.
    print("shell:", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    pid, fd = spawn(["bash", "-c", "trap : INT; " + " ".join(RUN) + " sh -c 'echo ready; exec cat'; echo status $?"])
    read_until(fd, b"ready\r\n")
    os.write(fd, b"typed\n")
    print(read_until(fd, b"typed\r\ntyped\r\n"))
    os.write(fd, b"\x03")
    print(read_until(fd, rb"status \d+\r\n"))
    os.waitpid(pid, 0)


def suspend():
    pid, fd = spawn(["bash", "--norc", "--noprofile", "-i"])
    read_until(fd, rb"[#$] ")
    os.write(fd, b"PS1='> '\n")
    read_until(fd, b"\n> ")
    os.write(fd, " ".join([*RUN, "sh", "-c", "'echo rea''dy; read x; echo resumed $x; exit 6'"]).encode() + b"\n")
    read_until(fd, b"ready")
    time.sleep(0.5)
    os.write(fd, b"\x1a")
    print("Stopped" in read_until(fd, b"Stopped[^>]*> "))
    os.write(fd, b"fg >/dev/null\n")
    time.sleep(0.5)
    os.write(fd, b"input\n")
    print(re.findall("^resumed.*", read_until(fd, b"resumed input[^>]*> "), re.M))
    os.write(fd, b"echo st''atus $?; exit\n")
    print(re.findall(r"status \d+", read_until(fd, rb"status \d+\r\n")))
    os.waitpid(pid, 0)


def winch():
    pid, fd = spawn([*RUN, "bash", "-c", "trap 'stty size; exit 4' WINCH; echo ready; while :; do sleep 0.05; done"])
    read_until(fd, b"ready\r\n")
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 132, 0, 0))
    print(read_until(fd, rb"\d+ \d+\r\n"))
    print("status", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


globals()[sys.argv[1]]()
