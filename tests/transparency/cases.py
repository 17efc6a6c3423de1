"""The programs that must not be able to tell the monitor from the bare machine, one case each.

Native run and run under the monitor get equal scratch directories and the same environment; then exit status, output
and all files of the directory are compared. `prepare` runs once, natively. A command that is a string runs in bash.
A `driver` case is native itself and starts the program under test with $RUN before its name (empty when native).
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    name: str
    command: object  # argument list, or a bash script
    packages: tuple = ()
    prepare: str = ":"
    tags: tuple = ("fast",)  # fast: also part of CI; clean: not a race in it (run.py --races)
    compare: tuple = ("stdout", "stderr", "files")
    ignore: tuple = ()  # files (fnmatch patterns) whose content is not the program's alone
    normalise: tuple = ()  # (regular expression, replacement) for output that differs natively too
    env: dict = field(default_factory=dict)
    stdin: bytes = b""
    status: int = 0  # what the native run must end with
    expect: str = ""  # regular expression the native standard output must match
    timeout: float = 60.0  # seconds, for each of the two runs
    driver: bool = False
    port: bool = False  # $PORT is a free TCP port


FULL = ("full",)
CLEAN = ("fast", "clean")

TEXT_20M = '/usr/bin/python3 "$PROGRAMS/make_input.py" text 20 >big.txt'
TEXT_4M = '/usr/bin/python3 "$PROGRAMS/make_input.py" text 4 >text'
MIXED_24M = '/usr/bin/python3 "$PROGRAMS/make_input.py" mixed 24 >big.bin'
MIXED_6M = '/usr/bin/python3 "$PROGRAMS/make_input.py" mixed 6 >big.bin'
TREE = '/usr/bin/python3 "$PROGRAMS/make_input.py" tree tree'

SHELLS = [
    Case("bash-pipeline", "for i in $(seq 20); do echo $((i % 7)) | sed 's/^/n/' | tr n N; done | sort | uniq -c"),
    Case("bash-job-control", ["bash", "$PROGRAMS/job_control.sh"], expect="continued"),
    Case("bash-features", ["bash", "$PROGRAMS/features.bash"], expect="coproc: HELLO"),
    Case("bash-many-forks", "n=0; for i in $(seq 60); do n=$((n + $(echo $i))); done; echo $n", expect="1830"),
    Case("dash-script", ["dash", "$PROGRAMS/posix.sh", "a b", "c"], packages=("dash",), status=7, expect="trap EXIT"),
    Case("busybox-static", ["busybox", "sh", "-c", "seq 200 | busybox sort -r | busybox awk '{s+=$1} END {print s}'; "
                            "busybox echo hi | busybox sha256sum; busybox ls -l /proc/self/fd | busybox wc -l"],
         packages=("busybox-static",), expect="20100"),
]

TEXT_TOOLS = [
    Case("coreutils-mix", ["sh", "-eu", "$PROGRAMS/coreutils.sh"], prepare=TREE, expect="done", timeout=120),
    Case("sort-parallel", "sort --parallel=2 -S 8M -T . big.txt >sorted; sort -c sorted && sha256sum sorted",
         prepare=TEXT_20M, tags=FULL, timeout=120),
    Case("sort-parallel-small", "sort --parallel=2 -S 4M -T . -k2,2 -k1n text | sha256sum", prepare=TEXT_4M),
    Case("grep-big", "grep -c 'quick' big.txt; grep -Eo '[a-f]+[0-9]{3}' big.txt | sha256sum; grep -P '(\\w)\\1\\w$' -c big.txt;"
         " grep -q nosuchword big.txt; echo $?", packages=("grep",), prepare=TEXT_20M),
    Case("sed-text", "sed -E 's/([a-z]+) ([0-9]+)/\\2:\\1/; /^$/d; 3,9{N;P;D}' text | sha256sum; sed -i.bak 's/quick/slow/g' text",
         packages=("sed",), prepare=TEXT_4M),
    Case("mawk-text", ["mawk", "{n[$2]+=length($0)} END {for (k in n) s+=n[k]*length(k); print NR, s}", "text"],
         packages=("mawk",), prepare=TEXT_4M, expect=r"^\d+ \d+"),
    Case("gawk-text", ["gawk", "{w[$2]++} END {PROCINFO[\"sorted_in\"]=\"@ind_str_asc\"; for (k in w) print k, w[k]}", "text"],
         packages=("gawk",), prepare=TEXT_4M),
    Case("find-tree", "find tree -type f -size +1k -printf '%p %s %m\\n' | sort; find tree -name '*.d' -exec ls -d {} +",
         packages=("findutils",), prepare=TREE, expect="tree/"),
    Case("xargs-parallel", "find tree -type f -print0 | xargs -0 -P2 -n4 sha256sum | sort | sha256sum", prepare=TREE),
    Case("bc-pi", "echo 'scale=400; 4*a(1)' | bc -lq", packages=("bc",), expect="^3.14159"),
    Case("jq-json", "/usr/bin/python3 -c 'import json; print(json.dumps([dict(i=i, s=str(i*i)) for i in range(20000)]))' |"
         " jq -c 'map(select(.i % 3 == 0) | .s | length) | add, ([.[]] | length)'", packages=("jq",), expect=r"^\d+"),
    Case("groff-text", "gzip -dc /usr/share/man/man1/dpkg.1.gz | groff -man -Tutf8 | sha256sum", packages=("groff", "dpkg"),
         expect="^[0-9a-f]{64}"),
    Case("man-page", ["man", "-P", "cat", "dpkg"], packages=("man-db",), env={"MANWIDTH": "80"}, expect="DPKG|No manual"),
    Case("diff-patch", "cp text new; sed -i '100,$s/quick/QUICK/' new; diff -u text new >p; echo $?; patch -s text p && cmp text new"
         " && wc -l <p", packages=("diffutils", "patch"), prepare=TEXT_4M, ignore=("p",), expect="^1\n"),
    Case("dpkg-query", "dpkg-query -W -f '${Package} ${Version}\\n' | sha256sum; dpkg -L coreutils | wc -l; dpkg -S /bin/sh",
         expect="^[0-9a-f]{64}"),
]

COMPRESSORS = [
    Case("tar-xz-T2", "tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - big.bin | xz -T2 -1 --block-size=2MiB"
         " >a.tar.xz; mkdir out; tar -xf a.tar.xz -C out; cmp big.bin out/big.bin && sha256sum a.tar.xz",
         packages=("xz-utils", "tar"), prepare=MIXED_6M),
    Case("zstd-T2", "zstd -q -T2 -6 big.bin; zstd -q -d big.bin.zst -o back; cmp big.bin back && sha256sum big.bin.zst",
         packages=("zstd",), prepare=MIXED_24M, tags=CLEAN),
    Case("xz-T4", "xz -T4 -1 --block-size=1MiB -k big.bin; sha256sum big.bin.xz", packages=("xz-utils",), prepare=MIXED_6M, tags=CLEAN),
    Case("pigz", "pigz -n -p2 -k big.bin; pigz -d -c big.bin.gz | cmp - big.bin && sha256sum big.bin.gz",
         packages=("pigz",), prepare=MIXED_24M, tags=CLEAN),
    Case("pbzip2", "pbzip2 -q -p2 -k big.bin; pbzip2 -d -p2 -c big.bin.bz2 | cmp - big.bin && sha256sum big.bin.bz2",
         packages=("pbzip2",), prepare=MIXED_6M, tags=CLEAN),
    Case("pbzip2-large", "pbzip2 -q -p2 -k big.bin; sha256sum big.bin.bz2", packages=("pbzip2",), prepare=MIXED_24M, tags=FULL),
    Case("gzip-bzip2", "gzip -nk9 text; bzip2 -k text; gzip -t text.gz && bzip2 -t text.bz2; sha256sum text.*",
         packages=("gzip", "bzip2"), prepare=TEXT_4M),
    Case("7z", "7z a -bd -mmt=2 -mx=3 -mtm- -mtc- a.7z big.bin >log && 7z t -bd a.7z >>log && grep -c 'Everything is Ok' log;"
         " 7z l -slt a.7z | grep CRC", packages=("p7zip-full",), prepare=MIXED_6M, ignore=("log", "a.7z"), expect="2\n.*CRC"),
]

RUNTIMES = [
    Case("sqlite3", ["sh", "-c", "sqlite3 data.db <\"$PROGRAMS/load.sql\"; sha256sum data.db >/dev/null; sqlite3 data.db "
                     "'PRAGMA integrity_check; SELECT count(*), sum(length(word)) FROM words;'"],
         packages=("sqlite3",), ignore=("data.db*",), expect="ok"),
    Case("python-threading", ["/usr/bin/python3", "$PROGRAMS/py_threading.py"], packages=("python3",), expect="total"),
    Case("python-subprocess", ["/usr/bin/python3", "$PROGRAMS/py_subprocess.py"], packages=("python3",), expect="signal -15"),
    Case("python-multiprocessing", ["/usr/bin/python3", "$PROGRAMS/py_multiprocessing.py"], packages=("python3",), timeout=120,
         expect="forkserver"),
    Case("python-asyncio", ["/usr/bin/python3", "$PROGRAMS/py_asyncio.py"], packages=("python3",), expect="echoed"),
    Case("python-signals", ["/usr/bin/python3", "$PROGRAMS/py_signals.py"], packages=("python3",), expect="itimer"),
    Case("python-mmap", ["/usr/bin/python3", "$PROGRAMS/py_mmap.py"], packages=("python3",), expect="shared"),
    Case("python-compile-all", "cp -r /usr/lib/python3.11/json j; /usr/bin/python3 -m compileall -q -j2 --invalidation-mode"
         " unchecked-hash j; find j -name '*.pyc' | sort", packages=("python3",), expect="pyc", tags=FULL),
    Case("perl-text", ["perl", "-ne", "$n{length $_}++ for split; END {print \"$_ $n{$_}\\n\" for sort {$a <=> $b} keys %n}", "text"],
         packages=("perl",), prepare=TEXT_4M),
    Case("perl-fork", ["perl", "$PROGRAMS/fork.pl"], packages=("perl",), expect="reaped 20"),
    Case("perl-threads", ["perl", "$PROGRAMS/threads.pl"], packages=("perl",), expect="sum"),
    Case("node-jit", ["node", "$PROGRAMS/jit.js"], packages=("nodejs",), expect="primes"),
    Case("node-workers", ["node", "$PROGRAMS/workers.js"], packages=("nodejs",), expect="workers"),
    Case("node-fs-child", ["node", "$PROGRAMS/fs_child.js"], packages=("nodejs",), expect="child"),
    Case("ruby-threads", ["ruby", "$PROGRAMS/threads.rb"], packages=("ruby",), expect="sum"),
    Case("lua", ["lua5.4", "$PROGRAMS/sieve.lua"], packages=("lua5.4",), expect="primes"),
    Case("php", ["php", "-r", "$s=0; for($i=0;$i<300000;$i++) $s=($s*31+$i)%1000003; echo $s, ' ', md5(str_repeat('a',100000)), \"\\n\";"
                 " $h=popen('echo child','r'); echo fgets($h);"], packages=("php-cli",), expect="child"),
    Case("tcl", ["tclsh", "$PROGRAMS/script.tcl"], packages=("tcl",), expect="child"),
    Case("java-threads", ["java", "-Xmx128m", "-cp", ".", "Threads"], packages=("default-jdk-headless",), tags=FULL, timeout=180,
         prepare='cp "$PROGRAMS/Threads.java" . && javac Threads.java', expect="sum"),
    Case("java-version", ["java", "-version"], packages=("default-jre-headless",), tags=FULL, timeout=120),
    Case("go-goroutines", ["./goroutines"], packages=("golang-go",), timeout=90, expect="sum", tags=FULL,
         prepare='GOFLAGS=-buildvcs=false GO111MODULE=off GOCACHE="$PWD/.c" GOPATH="$PWD/.p" go build -o goroutines'
                 ' "$PROGRAMS/goroutines.go"; rm -rf .c .p'),
    Case("rust-threads", ["./threads"], packages=("rustc",), expect="sum", tags=FULL,
         prepare='/usr/bin/rustc -O -o threads "$PROGRAMS/threads.rs"'),
    Case("rust-std", ["./std"], packages=("rustc",), expect="atomics 5261", tags=("full", "clean"),
         prepare='/usr/bin/rustc --edition 2021 -g -O -o std "$PROGRAMS/std.rs"'),
    Case("gdb-batch", "gdb --version | head -1; gdb -q -batch -ex 'print 6*7' -ex 'python print(sum(range(10)))'",
         packages=("gdb",), expect=r"\$1 = 42\n45"),
    # gdb's probe of its own child finds the monitor's registers there, and says so on standard error.
    Case("gdb-run", "gdb -q -batch -ex 'break add' -ex run -ex bt -ex 'print a + b' -ex finish -ex continue ./add",
         packages=("gdb", "gcc"), compare=("stdout", "files"), expect=r"(?s)\$1 = 42\n.*Value returned is \$2 = 42\n", normalise=((r"process \d+", "process N"),),
         prepare="printf 'int add(int a, int b) { return a + b; }\nint main(void) { return add(40, 2) == 42 ? 7 : 1; }\n' >add.c;"
                 " gcc -g -O0 -o add add.c"),
    Case("strace-child", "strace -f -e trace=execve,exit_group -e signal=none -o log sh -c 'echo a; (exit 5)'; echo $?; sed 's/^[0-9]* *//; s/, 0x.*//' log",
         packages=("strace",), expect="exit_group\\(5\\)", ignore=("log",)),
]

COMPILERS = [
    Case("gcc-pipe", "gcc -pipe -O2 -o prog prog.c && ./prog && sha256sum prog", packages=("gcc",),
         prepare='cp "$PROGRAMS/prog.c" .', expect="hash"),
    Case("make-j2", "make -s -j2 && ./calc && make -s -j2 clean && ls", packages=("gcc", "make"),
         prepare='/usr/bin/python3 "$PROGRAMS/make_input.py" project .', expect="calc"),
    Case("cxx-threads", ["./threads"], packages=("g++",), expect="sum",
         prepare='g++ -std=c++20 -O2 -pthread -o threads "$PROGRAMS/threads.cc"'),
    Case("cxx-threads-static", ["./threads"], packages=("g++",), expect="sum",
         prepare='g++ -std=c++20 -O2 -pthread -static -o threads "$PROGRAMS/threads.cc"'),
    Case("cxx-threads-static-pie", ["./threads"], packages=("g++",), expect="sum",
         prepare='g++ -std=c++20 -O2 -pthread -static-pie -o threads "$PROGRAMS/threads.cc"'),
    Case("cxx-threads-fixed", ["./threads"], packages=("g++",), expect="sum",
         prepare='g++ -std=c++20 -O2 -pthread -no-pie -fno-pie -o threads "$PROGRAMS/threads.cc"'),
    Case("cxx-openmp", ["./omp"], packages=("g++",), expect="sum", env={"OMP_NUM_THREADS": "2"},
         prepare='g++ -std=c++20 -O2 -fopenmp -o omp "$PROGRAMS/omp.cc"'),
    Case("cxx-tbb", ["./tbb"], packages=("g++", "libtbb-dev"), expect="graph 2646900", tags=FULL,
         prepare='g++ -std=c++17 -O2 -pthread -o tbb "$PROGRAMS/tbb.cc" -ltbb'),
    Case("cxx-exceptions", ["./exceptions"], packages=("g++",), expect="caught 1000",
         prepare='g++ -std=c++20 -O2 -pthread -o exceptions "$PROGRAMS/exceptions.cc"'),
    Case("make-googletest", "make -s -j2 && ./sample", packages=("googletest", "g++", "make"), tags=FULL, timeout=600,
         prepare='cp -r /usr/src/googletest/googletest gt; cp "$PROGRAMS/googletest.mk" Makefile', expect="PASSED",
         normalise=((r"\(\d+ ms( total)?\)", "(ms)"),)),
]

APPLICATIONS = [
    Case("git-local", ["sh", "-eu", "$PROGRAMS/git.sh"], packages=("git",), prepare=TREE, ignore=("repo*", "clone*"),
         timeout=120, expect="clone ok", env={"GIT_CONFIG_NOSYSTEM": "1"}),
    # The client's own threads race (docs/detection.md).
    *(Case(name, ["sh", "-eu", "$PROGRAMS/redis.sh", threads], packages=("redis-server", "redis-tools"), port=True,
           timeout=120, expect="cmdstat_set", ignore=("log", "dump.rdb"), tags=tags)
      for name, threads, tags in (("redis-benchmark", "2", ("fast",)), ("redis-server", "0", ("full", "clean")))),
    Case("nginx-ab", ["sh", "-eu", "$PROGRAMS/nginx.sh"], packages=("nginx-light", "apache2-utils", "curl"), port=True,
         timeout=120, prepare=MIXED_6M, ignore=("nginx/*",), expect="Failed requests: +0"),
    Case("curl-http-server", ["sh", "-eu", "$PROGRAMS/http.sh"], packages=("curl", "python3"), port=True, prepare=TREE,
         ignore=("log",), expect="200"),
    Case("openssl-speed", "openssl speed -multi 2 -seconds 1 -bytes 1024 sha256 2>&1 | grep -c '^sha256'", packages=("openssl",), expect="1"),
    Case("openssl-digest-enc", "openssl dgst -sha256 -sha3-512 big.bin 2>&1; openssl dgst -sha512 big.bin; openssl enc -aes-256-ctr"
         " -pbkdf2 -nosalt -pass pass:x -in big.bin | sha256sum; openssl version", packages=("openssl",), prepare=MIXED_24M),
    Case("openssl-sign", "openssl dgst -sha256 -sign key -out sig big.bin && openssl dgst -sha256 -verify pub -signature sig big.bin;"
         " openssl s_time -help 2>&1 | head -1", packages=("openssl",), expect="Verified OK",
         prepare=MIXED_6M + "; openssl genrsa -out key 2048 2>/dev/null; openssl rsa -in key -pubout -out pub 2>/dev/null"),
    Case("ffmpeg-x264", ["ffmpeg", "-v", "error", "-nostdin", "-f", "lavfi", "-i", "testsrc=s=320x240:r=25:d=2", "-threads", "2",
                         "-c:v", "libx264", "-preset", "fast", "-bitexact", "-f", "framemd5", "-"],
         packages=("ffmpeg",), timeout=120, expect="0, "),
    Case("x264-encode", ["x264", "--quiet", "--threads", "2", "--preset", "veryfast", "-o", "out.264", "in.y4m"],
         packages=("x264", "ffmpeg"), compare=("stdout", "files"), tags=FULL,
         prepare="ffmpeg -v error -nostdin -f lavfi -i testsrc=s=320x240:r=25:d=2 -pix_fmt yuv420p in.y4m"),
    Case("imagemagick", "convert-im6.q16 -seed 7 -size 300x200 plasma:fractal -blur 0x3 -resize 50% -depth 8 rgb:- | sha256sum",
         packages=("imagemagick",), expect="^[0-9a-f]{64}"),
    Case("rsync-local", "rsync -a tree/ copy/ && touch -d @0 tree/a && rsync -ai --delete tree/ copy/ | wc -l; diff -r tree copy && echo same",
         packages=("rsync",), prepare=TREE, expect="same"),
    Case("zip-unzip", "zip -qrX a.zip tree && unzip -qq a.zip -d out && diff -r tree out/tree && echo same",
         packages=("zip", "unzip"), prepare=TREE, ignore=("a.zip",), expect="same"),
    *(Case(f"stress-ng-{what}", ["stress-ng", "--no-rand-seed", "--oomable", *arguments], packages=("stress-ng",), timeout=120,
           compare=("stderr", "files"), tags=tags,
           normalise=((r"\[\d+\]", "[pid]"), (r"in [\d.]+s( \(.*\))?", "in T"), (r"\d+\.\d+ secs?", "T"),
                      (r"^.*(using up to|cache|has no|limit|forced|priority).*\n", "")))
      for what, arguments, tags in (
          ("vm", ["--vm", "2", "--vm-bytes", "8M", "--vm-ops", "300"], ("fast",)),
          ("mmap", ["--mmap", "1", "--mmap-bytes", "8M", "--mmap-ops", "20"], ("fast",)),
          ("signal", ["--signal", "1", "--signal-ops", "2000"], ("fast",)),
          ("sigfpe", ["--sigfpe", "1", "--sigfpe-ops", "200"], FULL),
          ("sigsegv", ["--sigsegv", "1", "--sigsegv-ops", "200"], ("fast",)),
          ("pthread", ["--pthread", "1", "--pthread-ops", "60", "--pthread-max", "16"], ("fast",)),
          ("fork", ["--fork", "1", "--fork-ops", "60"], ("fast",)),
          ("vfork", ["--vfork", "1", "--vfork-ops", "60"], FULL),
          ("futex", ["--futex", "1", "--futex-ops", "500"], FULL),
          ("timer", ["--timer", "1", "--timer-ops", "500"], FULL),
          ("brk", ["--brk", "1", "--brk-ops", "2000"], FULL),
          ("stack", ["--stack", "1", "--stack-ops", "2"], FULL),
          ("mremap", ["--mremap", "1", "--mremap-ops", "50", "--mremap-bytes", "8M"], FULL),
          ("madvise", ["--madvise", "1", "--madvise-ops", "1"], FULL),
          ("shm", ["--shm", "1", "--shm-ops", "5"], FULL),
          ("memfd", ["--memfd", "1", "--memfd-ops", "3", "--memfd-bytes", "8M"], FULL),
          ("exec", ["--exec", "1", "--exec-ops", "40"], FULL),
          ("pipe", ["--pipe", "1", "--pipe-ops", "2000"], FULL))),
]

PROCESS = [
    *(Case(f"death-by-{name.lower()}", ["sh", "-c", f"kill -{name} $$; sleep 5"], status=-number)
      for name, number in (("SEGV", 11), ("ABRT", 6), ("TERM", 15), ("KILL", 9), ("HUP", 1), ("USR1", 10), ("PIPE", 13))),
    Case("crash-segv", ["./crash", "segv"], packages=("gcc",), prepare='gcc -O0 -w -pthread -o crash "$PROGRAMS/crash.c"', status=-11),
    Case("crash-fpe", ["./crash", "fpe"], packages=("gcc",), prepare='gcc -O0 -w -pthread -o crash "$PROGRAMS/crash.c"', status=-8),
    Case("crash-ill", ["./crash", "ill"], packages=("gcc",), prepare='gcc -O0 -w -pthread -o crash "$PROGRAMS/crash.c"', status=-4),
    Case("crash-bus", ["./crash", "bus"], packages=("gcc",), prepare='gcc -O0 -w -pthread -o crash "$PROGRAMS/crash.c"', status=-7),
    Case("crash-trap", ["./crash", "trap"], packages=("gcc",), prepare='gcc -O0 -w -pthread -o crash "$PROGRAMS/crash.c"', status=-5),
    Case("crash-in-thread", ["./crash", "thread"], packages=("gcc",),
         prepare='gcc -O0 -w -pthread -o crash "$PROGRAMS/crash.c"', status=-11),
    Case("crash-stack-overflow", ["./crash", "stack"], packages=("gcc",),
         prepare='gcc -O0 -w -pthread -o crash "$PROGRAMS/crash.c"', status=-11),
    Case("abort-message", ["./crash", "assert"], packages=("gcc",), prepare='gcc -O0 -w -pthread -o crash "$PROGRAMS/crash.c"',
         status=-6),
    Case("exit-status", "for s in 0 1 2 42 125 126 127 255; do sh -c \"exit $s\"; echo $?; done; exit 133", status=133),
    Case("exit-status-77", ["sh", "-c", "exit 77"], status=77),
    Case("environment", ["env"], env={"STRANGE": "a=b\n\t\"c'", "EMPTY": ""}, expect="STRANGE=a=b",
         normalise=((r"^(TRAPLINE_TEST_MARKER)=.*$", r"\1"),)),
    Case("arguments", ["printf", "<%s>\n", "", "a b", "*", "--", "-x", "é", "tab\there"], expect="<\\*>"),
    Case("working-directory", "mkdir gone; cd gone; rmdir ../gone; /bin/pwd; cd ..; /bin/pwd -P; readlink /proc/self/cwd",
         compare=("stdout", "files")),
    Case("fd-inheritance", "exec 5>five 7<in; $RUN sh -c 'echo to-five >&5; cat <&7; ls /proc/self/fd | tr \"\\n\" \" \"'; cat five",
         driver=True, prepare="echo from-seven >in", expect="from-seven"),
    Case("closed-stdin", "$RUN sh -c 'cat; echo $?' <&-; $RUN /bin/echo x >&-; echo $?", driver=True),
    Case("stdin-pipe", ["sh", "-c", "head -c 100000 | sha256sum; wc -c"], stdin=b"0123456789" * 20000),
    Case("stdin-file-offset", "exec <in; $RUN head -n1 >/dev/null; $RUN sh -c 'read a; echo $a'", driver=True,
         prepare="seq 100 >in; printf 'a\\nb\\nc\\n' >in", compare=("stdout", "stderr", "files")),
    Case("sigpipe", "$RUN yes | head -n1; echo \"${PIPESTATUS[@]}\"", driver=True, expect="141 0"),
    Case("sigpipe-ignored", "trap '' PIPE; $RUN seq 100000 2>err | head -n1; echo \"${PIPESTATUS[@]}\"; cat err", driver=True,
         expect="1 0", normalise=((r"seq: .*", "seq: error"),)),
    Case("signals-ignored-inherited", "trap '' INT USR2; $RUN grep -E 'Sig(Ign|Blk|Cgt)' /proc/self/status", driver=True, expect="SigIgn"),
    Case("ulimits", "ulimit -n 100; ulimit -s 4096; ulimit -c 0; $RUN sh -c 'ulimit -n; ulimit -s; ulimit -c'", driver=True,
         expect="100\n4096"),
    Case("no-address-randomisation", ["setarch", "-R", "sh", "-c", "echo $((6 * 7)); env -i /usr/bin/python3 -c 'print(1)'"],
         packages=("python3",), expect="42"),
    Case("stack-unlimited", "ulimit -s unlimited; $RUN sh -c 'ulimit -s; perl -e \"print 7\"'", driver=True, expect="unlimited\n7"),
    Case("umask-nice", "umask 027; $RUN nice -n 5 sh -c 'umask; nice; touch f'; stat -c %a f", driver=True, expect=r"0027\n\d+\n640"),
    Case("process-names", "$RUN sh -c 'cat /proc/$$/comm; readlink /proc/$$/exe; tr \"\\\\0\" \" \" </proc/$$/cmdline; true'",
         driver=True, expect="sh\n/usr/bin/dash"),
    Case("signal-from-outside", ["bash", "$PROGRAMS/signal_from_outside.sh"], driver=True, expect="handled TERM"),
    Case("stop-continue", ["bash", "$PROGRAMS/stop_continue.sh"], driver=True, expect="stopped T"),
    Case("tty-interrupt", ["/usr/bin/python3", "$PROGRAMS/terminal.py", "interrupt"], driver=True, packages=("python3",), expect="130"),
    Case("tty-suspend", ["/usr/bin/python3", "$PROGRAMS/terminal.py", "suspend"], driver=True, packages=("python3",), expect="resumed"),
    Case("tty-window-size", ["/usr/bin/python3", "$PROGRAMS/terminal.py", "winch"], driver=True, packages=("python3",), expect="50 132"),
    Case("timeout-inside", ["timeout", "-s", "INT", "0.3", "sleep", "30"], status=124),
    Case("timeout-outside", "timeout 1 $RUN sleep 30; echo $?", driver=True, expect="124"),
    Case("unshare-user", "unshare -Ur sh -c 'id -u; cat /proc/self/uid_map | tr -s \" \"'; unshare -Urm sh -c 'mount -t tmpfs t /mnt && ls -A /mnt | wc -l'",
         expect="^0\n 0 0 1\n0\n"),
    Case("setsid-nohup", "setsid -w sh -c 'echo in new session'; nohup sh -c 'echo out; exit 3' 2>/dev/null; echo $?",
         expect="new session\nout\n3"),
    Case("script-interpreter", ["./script", "one", "two words"], expect="two words",
         prepare="printf '#!/bin/sh -u\\necho \"$0\" \"$2\"\\n' >script; chmod +x script"),
    Case("script-of-script", ["./outer", "x"], expect="outer",
         prepare="printf '#!/bin/sh\\necho inner \"$@\"\\n' >inner; chmod +x inner;"
                 " printf '#!./inner flag\\n' >outer; chmod +x outer"),
    Case("exec-chain", ["sh", "-c", "exec env A=1 sh -c 'exec nice -n 1 sh -c \"echo \\$A \\$0; exit 9\" name'"], status=9, expect="1 name"),
    Case("orphan-outlives-parent", "$RUN bash -c '(sleep 1; echo late >late) & disown; echo parent gone'; ls; for _ in $(seq 200); do [ -s late ] && break; sleep 0.05; done; cat late",
         driver=True, expect="parent gone\nlate"),
    Case("static-true", ["busybox", "true"], packages=("busybox-static",)),
    Case("deep-recursion", ["bash", "-c", "f() { [ $1 -eq 0 ] && echo bottom || f $(($1 - 1)); }; f 1500"], expect="bottom"),
]

CASES = [*SHELLS, *TEXT_TOOLS, *COMPRESSORS, *RUNTIMES, *COMPILERS, *APPLICATIONS, *PROCESS]

assert len({case.name for case in CASES}) == len(CASES), "two cases have the same name"
