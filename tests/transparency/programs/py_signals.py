"""Handlers, masks, sigwait, interval timers, interrupted calls, wake-up descriptor."""
import os
import select
import signal
import threading
import time

seen = []
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM):
    signal.signal(number, lambda n, frame: seen.append(signal.Signals(n).name))
os.kill(os.getpid(), signal.SIGUSR1)
print("handled", seen)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
os.kill(os.getpid(), signal.SIGUSR2)
print("pending", signal.sigpending(), seen)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR2])
print("after", seen)
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
while seen.count("SIGALRM") < 5:
    time.sleep(0.01)
signal.setitimer(signal.ITIMER_REAL, 0)
print("itimer")
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM)).start()
print("sigwait", signal.sigwait([signal.SIGTERM]))
r, w = os.pipe()
os.set_blocking(w, False)
signal.set_wakeup_fd(w)
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
print("wakeup", select.select([r], [], [], 10)[0] == [r], os.read(r, 1))
print("sigtimedwait", signal.sigtimedwait([signal.SIGTERM], 0.01))


class Stop(Exception):
    pass


def stop(number, frame):
    raise Stop


signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    os.read(os.pipe()[0], 1)
except Stop:
    print("read interrupted")
