# SIGSTOP and SIGCONT from outside: the whole program stops, goes on, and misses nothing.
$RUN sh -c 'i=0; while [ $i -lt 30 ]; do i=$((i + 1)); echo $i >>count; sleep 0.05; done; echo finished' &
child=$!
for _ in $(seq 400); do [ -s count ] && break; sleep 0.05; done
kill -STOP "$child"
sleep 0.4
for _ in $(seq 400); do grep -q '^State:.T' "/proc/$child/status" && break; sleep 0.05; done
echo "stopped $(awk '/^State/ {print $2}' "/proc/$child/status")"
kill -CONT "$child"
wait "$child"
echo "status $? $(wc -l <count)"
