seq 200000 >numbers
/guest-bin/pigz -n -p 2 -b 128 -k numbers
gunzip -c numbers.gz | cmp - numbers && echo same
