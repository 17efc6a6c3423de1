"""Pipes, exit statuses, signals, time limits, working directory, environment, passed descriptors."""
import os
import signal
import subprocess
import sys

print(subprocess.run(["tr", "a-z", "A-Z"], input="hello", capture_output=True, text=True, check=True).stdout)
print("status", subprocess.call(["sh", "-c", "exit 42"]))
child = subprocess.Popen(["sleep", "30"])
child.terminate()
print("signal", child.wait())
try:
    subprocess.run(["sleep", "30"], timeout=0.3, check=False)
except subprocess.TimeoutExpired:
    print("time limit")
print(subprocess.check_output(["pwd"], cwd="/usr", text=True), end="")
print(subprocess.check_output(["env"], env={"ONLY": "this"}, text=True), end="")
r, w = os.pipe()
child = subprocess.Popen(["sh", "-c", f"echo through >&{w}"], pass_fds=[w])
os.close(w)
print(os.read(r, 100), child.wait())
first = subprocess.Popen(["seq", "1000"], stdout=subprocess.PIPE)
second = subprocess.Popen(["tail", "-n1"], stdin=first.stdout, stdout=subprocess.PIPE, text=True)
first.stdout.close()
print(second.communicate()[0].strip(), first.wait())
big = subprocess.run(["cat"], input=b"x" * 3_000_000, capture_output=True, check=True)
print(len(big.stdout))
try:
    subprocess.run(["/nonexistent/program"], check=False)
except FileNotFoundError as error:
    print(error)
print(subprocess.run([sys.executable, "-c", "import os; os.abort()"], check=False).returncode == -signal.SIGABRT)
pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 3"], {})
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
pid = os.fork()
if pid == 0:
    os.execvp("sh", ["sh", "-c", "exit 8"])
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
