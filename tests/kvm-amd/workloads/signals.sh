trap 'echo usr1' USR1
kill -USR1 $$
sh -c 'kill -SEGV $$'
echo "segv $?"
sh -c 'trap "echo term; exit 4" TERM; kill -TERM $$; sleep 5'
echo "term $?"
# Whether the shell says "Terminated" depends on when it looks.
{
  sleep 20 &
  kill $!
  wait $!
  echo "killed $?"
} 2>/dev/null
