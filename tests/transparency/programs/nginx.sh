# Two worker processes serve a file and a status page to a load of eight connections.
mkdir -p nginx www
cp big.bin www/
echo hello >www/index.html
cat >nginx/conf <<END
worker_processes 2;
pid nginx/pid;
error_log nginx/error;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path nginx/body; proxy_temp_path nginx/proxy; fastcgi_temp_path nginx/fastcgi;
  uwsgi_temp_path nginx/uwsgi; scgi_temp_path nginx/scgi;
  server { listen 127.0.0.1:$PORT; root $PWD/www; }
}
END
[ "$(id -u)" = 0 ] && sed -i "1i user $(id -un) $(id -gn);" nginx/conf
nginx -p "$PWD" -c nginx/conf -g 'daemon off;' 2>nginx/stderr &
server=$!
for _ in $(seq 200); do
  curl -sf "http://127.0.0.1:$PORT/" >/dev/null && break
  sleep 0.05
done
ab -q -n 600 -c 8 "http://127.0.0.1:$PORT/index.html" | grep -E '^(Complete|Failed) requests|^Document Length'
curl -s "http://127.0.0.1:$PORT/big.bin" | cmp - big.bin && echo same
curl -s -o /dev/null -w '%{http_code}\n' "http://127.0.0.1:$PORT/none"
kill -HUP "$server"
sleep 0.5
curl -s "http://127.0.0.1:$PORT/"
kill -QUIT "$server"
wait "$server"
echo "server ended $?"
