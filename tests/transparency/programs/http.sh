# Python's threading web server and curl.
/usr/bin/python3 -m http.server --bind 127.0.0.1 --directory tree "$PORT" >log 2>&1 &
server=$!
for _ in $(seq 200); do
  curl -sf "http://127.0.0.1:$PORT/a" >/dev/null && break
  sleep 0.05
done
for name in a a.d/file1 e/file24 none; do
  curl -s -w '%{http_code} %{size_download}\n' "http://127.0.0.1:$PORT/$name" | tail -n1
done
curl -s --parallel --parallel-max 4 -o '#1' "http://127.0.0.1:$PORT/a.d/file[0-9]" 2>/dev/null
cat [0-9] | sha256sum
kill -TERM "$server"
wait "$server" 2>/dev/null || echo "server ended $?"
