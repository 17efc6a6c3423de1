i=0
while [ $i -lt 10 ]; do i=$((i + 1)); (exit $i) || echo "child $?"; done
x=$(echo inner; exit 3)
echo "$x $?"
sleep 0.1 &
wait $!
echo "waited $?"
