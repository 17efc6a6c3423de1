# Job control without a terminal: process groups, stop and continue, wait's view of each. Pipes say when to go on.
set -m
mkfifo first second ready
cat first &
cat second &
jobs | sed 's/ \+/ /g'
echo "end of the first" >first
wait %1
echo "first: $?"
echo "end of the second" >second
wait
sh -c 'kill -STOP $$; echo continued; exit 4' &
child=$!
wait "$child"
echo "stopped: $?"
jobs -s | sed 's/ \+/ /g' | cut -c1-12
kill -CONT "$child"
while kill -0 "$child" 2>/dev/null; do sleep 0.02; done # what wait says here depends on which of the two is faster
wait
(trap 'echo got TERM; exit 5' TERM; echo >ready; while :; do sleep 0.05; done) &
read -r _ <ready
kill -TERM $!
wait $!
echo "trapped: $?"
rm first second ready
