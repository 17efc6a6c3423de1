"""The emulated machine that stands in for hardware: QEMU's AMD processor with SVM, and Debian's cloud kernel with kvm_amd.

Correctness only: an emulated processor's times mean nothing. QEMU's exit status says nothing either; what runs inside tells.
"""

import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

KVM_MODULES = ["irqbypass", "kvm", "kvm-amd"]  # in this order: there is no modprobe inside

# One TCG thread: with more, QEMU 7.2 now and then hangs when the first VM is made.
QEMU = ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-M", "q35", "-cpu", "EPYC,+svm,+npt",
        "-nodefaults", "-nographic", "-no-reboot", "-monitor", "none", "-net", "none"]
KERNEL_ARGUMENTS = "console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off tsc=reliable no_timer_check"


def fetch(cache):
    """Kernel and busybox, under this directory from then on."""
    subprocess.run([HERE / "fetch.sh", cache], check=True)


def make_initramfs(cache, output, init, modules, programs):
    """What the machine starts with: busybox, an init, kernel modules, programs (source, path inside) with their libraries."""
    subprocess.run([HERE / "make_initramfs.sh", cache, output, init, " ".join(modules),
                    *(f"{source}={target}" for source, target in programs)], check=True)


def boot(cache, initramfs, devices, timeout, on_line, complaints=subprocess.STDOUT):
    """Runs the machine and hands on the lines it writes to QEMU's standard output; tells whether it ended within the time limit.

    What QEMU itself has to say goes to the file `complaints`.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # and no machine is left behind
    kernel = next((cache / "kernel" / "boot").glob("vmlinuz-*"))
    command = ["timeout", "-k", "10", str(timeout), *QEMU, *devices, "-kernel", kernel, "-initrd", initramfs, "-append", KERNEL_ARGUMENTS]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints) as qemu:
        try:
            for line in qemu.stdout:
                on_line(line)
        except BaseException:
            qemu.terminate()
            raise
    return qemu.returncode not in (124, 137)
