seq 60000 >numbers
/guest-bin/xz -T2 -0 --block-size=131072 -k numbers
/guest-bin/xz -dc numbers.xz | cmp - numbers && echo same
