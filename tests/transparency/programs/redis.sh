# A server under load by so many threads of the client; its own counters tell whether each command
# arrived.
threads=$1
redis-server --port "$PORT" --bind 127.0.0.1 --save '' --appendonly no --io-threads 2 --daemonize no >log 2>&1 &
server=$!
for _ in $(seq 200); do
  [ "$(redis-cli -p "$PORT" ping 2>/dev/null)" = PONG ] && break
  sleep 0.05
done
redis-benchmark -p "$PORT" -q -n 3000 -c 10 -t set,get,incr,lpush,mset >/dev/null
redis-benchmark -p "$PORT" -q -n 2000 -c 4 -P 8 --threads "$threads" -r 1 -t set,get >/dev/null
redis-cli -p "$PORT" set key value
redis-cli -p "$PORT" get key
redis-cli -p "$PORT" info commandstats | sed 's/,.*//' | grep -E 'cmdstat_(set|get|incr|lpush|mset):' | sort
redis-cli -p "$PORT" bgsave
for _ in $(seq 100); do
  redis-cli -p "$PORT" info persistence | grep -q rdb_bgsave_in_progress:1 || break
  sleep 0.05
done
redis-cli -p "$PORT" info persistence | grep rdb_last_bgsave_status
redis-cli -p "$PORT" shutdown nosave
wait "$server"
echo "server ended $?"
