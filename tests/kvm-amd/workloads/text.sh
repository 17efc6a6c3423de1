seq 3000 | gzip -c | gunzip -c | md5sum
seq 2000 >numbers
sort -r numbers | head -n 3
grep -c 7 numbers
dd if=/dev/zero of=zeros bs=4096 count=200 2>/dev/null
sha256sum zeros
tar -cf all.tar numbers zeros
tar -xOf all.tar numbers | tail -n 1
rm all.tar
