trap 'echo usr1' USR1
kill -USR1 $$
sh -c 'kill -SEGV $$'
echo "segv $?"
sh -c 'trap "echo term; exit 4" TERM; kill -TERM $$; sleep 5'
echo "term $?"
sleep 20 &
kill $!
wait $!
echo "killed $?"
