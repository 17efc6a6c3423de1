# Bash features that need pipes, forks and descriptors of their own.
diff <(seq 5) <(seq 2 6)
coproc tr a-z A-Z
pid=$COPROC_PID
echo hello >&"${COPROC[1]}"
fd=${COPROC[1]}
exec {fd}>&-
read -r answer <&"${COPROC[0]}"
echo "coproc: $answer"
wait "$pid"
mapfile -t lines < <(printf '%s\n' one two three)
declare -A count=([x]=1 [y]=2)
echo "${#lines[@]} ${lines[2]} ${count[y]} ${!count[*]}"
set -o pipefail
false | true
echo "pipefail $?"
exec 9<>scratch
echo text >&9
cat scratch
read -r -t 0.2 never < <(sleep 1)
echo "read timeout $(($? > 128))"
trap 'echo alarm; alarmed=yes' ALRM
(sleep 0.1; kill -ALRM $$) &
wait $!
until [ "$alarmed" ]; do sleep 0.02; done
printf '%(%Y-%m-%d)T\n' 0
{ time -p true; } 2>&1 | tr 0-9 n
[[ abc123 =~ ([a-z]+)([0-9]+) ]] && echo "${BASH_REMATCH[@]}"
cat <<END | while read -r word; do echo "word $word"; done
here $((6 * 7))
document
END
