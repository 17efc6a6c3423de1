# What a POSIX shell does with positional parameters, subshells, redirections and traps.
trap 'echo trap EXIT' EXIT
echo "$# $1 $2"
fact() { if [ "$1" -le 1 ]; then echo 1; else echo $(($1 * $(fact $(($1 - 1))))); fi; }
fact 10
(exit 3) || echo "subshell $?"
set -- $(printf '%s ' 3 1 2)
for n; do echo "$n"; done | sort
{ echo err >&2; echo out; } 2>&1 | sort
exec 3>file
echo third >&3
exec 3>&-
cat file
ls /nonexistent 2>/dev/null || echo "ls $?"
case $(uname -s) in Linux) echo linux ;; esac
sh -c 'kill -9 $$'
echo "killed $?"
printf '%05d|%x|%s\n' 42 255 str
(while :; do sleep 0.02; done) &
kill $!
wait $!
echo "wait $?"
exit 7
