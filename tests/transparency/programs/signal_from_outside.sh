# A native process signals the program under test; its handler must run in the program.
$RUN bash -c 'trap "echo handled TERM; exit 3" TERM; trap "echo handled USR1" USR1; : >ready; while :; do sleep 0.05; done' &
child=$!
for _ in $(seq 400); do [ -e ready ] && break; sleep 0.05; done
rm -f ready
kill -USR1 "$child"
sleep 0.6
kill -TERM "$child"
wait "$child"
echo "status $?"
$RUN sleep 30 &
child=$!
sleep 0.6
kill -INT "$child" # ignored: the shell starts background children with SIGINT ignored
kill -HUP "$child"
wait "$child" 2>/dev/null
echo "status $?"
