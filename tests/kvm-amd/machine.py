#!/usr/bin/python3
"""Runs a command on an emulated machine that has this one's files, and a KVM: real kvm_amd on QEMU's AMD processor.

The command sees this machine's root directory, read-only underneath: what it writes is gone when it has ended. It runs as
root in the current directory with an environment of its own; its output comes out here, and its exit status is this one's, but
124: out of time, 125: the machine did not come up, or died. Times mean nothing: emulated code is 5 to 20 times slower.
"""

import argparse
import os
import resource
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))

import emulated  # noqa: E402
import harness  # noqa: E402

OUT_OF_TIME, NO_MACHINE = 124, 125
VIRTIOFSD = "/usr/lib/qemu/virtiofsd"
MODULES = ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_console", "fuse", "virtiofs",
           "overlay", *emulated.KVM_MODULES]
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", "HOME": "/root", "USER": "root", "LOGNAME": "root",
               "SHELL": "/bin/sh", "LC_ALL": "C.UTF-8", "TERM": "dumb"}

# Process 1 from here on. The ports are found by what QEMU was told to call them.
JOB = """\
machine=/run/machine
for port in /sys/class/virtio-ports/*; do
  $machine/busybox ln -s "/dev/${{port##*/}}" "$machine/$($machine/busybox cat "$port/name")"
done
ulimit -Hn 1048576
case {directory} in /tmp/*) ;; *) $machine/busybox mount -t tmpfs -o mode=1777,size=50% tmp /tmp ;; esac
if cd {directory}; then
  $machine/busybox setsid $machine/busybox env -i {environment} {command} </dev/null >$machine/output 2>&1
  echo $? >$machine/status
fi
$machine/busybox poweroff -f
"""


def serve_files(path, complaints):
    """Starts what serves this machine's root directory to the one that connects to the path."""
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        files = 1000000
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        # Nothing changes meanwhile that the command would have to see, so everything may be cached.
        return subprocess.Popen([VIRTIOFSD, "-f", f"--fd={listener.fileno()}", f"--rlimit-nofile={files}",
                                 "-o", "source=/", "-o", "cache=always", "-o", "sandbox=chroot"],
                                stdin=subprocess.DEVNULL, stderr=complaints, pass_fds=[listener.fileno()])


def run(options, directory):
    """The exit status of the command, or one of ours with a message."""
    job, initramfs, status, console = (directory / name for name in ("job", "initramfs", "status", "console"))
    job.write_text(JOB.format(directory=shlex.quote(os.getcwd()), command=shlex.join(options.command),
                              environment=shlex.join(f"{name}={value}" for name, value in ENVIRONMENT.items())))
    listing = directory / "modules.list"
    listing.write_text("\n".join(MODULES) + "\n")
    emulated.make_initramfs(options.cache, initramfs, HERE / "machine-init", MODULES, [(job, "/job"), (listing, "/modules.list")])
    files = directory / "files"
    # virtiofsd reads the machine's memory, so it must be shared.
    devices = ["-smp", str(options.processors), "-m", str(options.memory),
               "-object", f"memory-backend-memfd,id=memory,size={options.memory}M,share=on", "-numa", "node,memdev=memory",
               "-chardev", f"socket,id=files,path={files}", "-device", "vhost-user-fs-pci,chardev=files,tag=host", "-serial", f"file:{console}",
               "-device", "virtio-serial", "-chardev", "file,id=output,path=/dev/stdout", "-device", "virtserialport,chardev=output,name=output",
               "-chardev", f"file,id=status,path={status}", "-device", "virtserialport,chardev=status,name=status"]

    def on_line(line):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()

    with open(directory / "complaints", "w+b") as complaints:
        server = serve_files(files, complaints)
        try:
            in_time = emulated.boot(options.cache, initramfs, devices, options.timeout, on_line, complaints)
        finally:
            server.kill()
            server.wait()
    if status.exists() and status.read_text().strip():
        return int(status.read_text())
    why = "the machine died" if in_time else f"the machine was stopped after {options.timeout} s"
    print(f"machine: {why}; the last lines of QEMU, virtiofsd and its console:", file=sys.stderr)
    for log in (directory / "complaints", console):
        for line in log.read_text(errors="replace").splitlines()[-15:] if log.exists() else []:
            print("          " + line, file=sys.stderr)
    return NO_MACHINE if in_time else OUT_OF_TIME


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memory", type=int, default=3072, help="MiB (default: 3072); what the command writes to files counts")
    parser.add_argument("--processors", type=int, default=1, help="default: 1; more take turns of 100 ms")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for the whole machine (default: 600)")
    parser.add_argument("--cache", type=Path, default=harness.ROOT / "build" / "kvm-amd")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="after --")
    options = parser.parse_args()
    options.cache = options.cache.resolve()
    emulated.fetch(options.cache)
    if os.geteuid() != 0:  # what reads all files for another kernel must be root
        if not shutil.which("sudo"):
            print("machine: needs root or sudo, for virtiofsd", file=sys.stderr)
            return NO_MACHINE
        os.execvp("sudo", ["sudo", *sys.argv])
    with tempfile.TemporaryDirectory(prefix="trapline-machine-") as directory:
        return run(options, Path(directory))


if __name__ == "__main__":
    sys.exit(main())
