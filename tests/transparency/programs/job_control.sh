# Job control without a terminal: process groups, stop and continue, wait's view of each.
set -m
sleep 0.2 &
sleep 0.3 &
jobs | sed 's/ \+/ /g'
wait %1
echo "first: $?"
wait
sh -c 'kill -STOP $$; echo continued; exit 4' &
child=$!
wait "$child"
echo "stopped: $?"
jobs -s | sed 's/ \+/ /g' | cut -c1-12
kill -CONT "$child"
while kill -0 "$child" 2>/dev/null; do sleep 0.02; done # what wait says here depends on which of the two is faster
wait
(trap 'echo got TERM; exit 5' TERM; while :; do sleep 0.05; done) &
sleep 0.5
kill -TERM $!
wait $!
echo "trapped: $?"
