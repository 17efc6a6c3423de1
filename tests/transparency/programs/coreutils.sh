# A walk through coreutils; everything that is printed or left behind is deterministic.
cp -a tree copy
mv copy/e copy/moved
ln copy/a copy/hard
ln -s moved copy/soft
chmod 640 copy/a
stat -c '%n %s %a %h %F' copy/a copy/soft copy/moved
ls -lR --time-style=+ copy | awk '{print $1, $3 != "", $5, $6}'
touch -d @86400 copy/a
date -u -r copy/a +%F
find copy -type f | sort | xargs cat | sha256sum
cat copy/a.d/* | tr ' ' '\n' | sort -S 1M | uniq -c | sort -k1nr -k2 | head -n 20
cat copy/a.d/* >all
split -b 7000 -d all part.
cat part.* | cmp - all
csplit -s -z -f cs. all '/fox/' '{3}'
wc all cs.*
cut -d' ' -f2,4 all | paste -d: - - | head -n 5
seq 10 | tac | nl | expand | fold -w 9 | od -c | tail -n 5
join -j 1 part.00 part.00 2>/dev/null | md5sum
base64 all | base64 -d | cmp - all
factor 1234567890123 998244353
numfmt --to=iec 123456789
shuf --random-source=all -i 1-1000 | sha256sum
sha1sum all
b2sum all
cksum all
printf '%s\n' b a c | sort -r | tee teed
dd if=all of=dd.out bs=512 count=9 skip=2 2>/dev/null
truncate -s 3M sparse
dd if=all of=sparse bs=1 seek=2000000 count=20 conv=notrunc 2>/dev/null
sha256sum dd.out sparse
du -b all sparse
mkfifo fifo
(cat all >fifo) &
wc -c <fifo
wait
rm fifo
timeout 5 sleep 0.01
env -i A=b env
id -u
expr 7 \* 6
basename /a/b.c .c
realpath --relative-to=copy/a.d copy/moved
rmdir "$(mktemp -d -p . XXXXXX)"
install -m 755 all bin
tsort <<END
a b
b c
END
stdbuf -oL echo line
nproc --all | grep -c '[0-9]'
rm -rf copy
echo done
