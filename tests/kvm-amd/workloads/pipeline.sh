seq 300 | sed 's/$/ x/' | awk '{s += $1} END {print s, NR}'
printf '%s\n' c a b | sort | tr a-c A-C | tee copy
wc -c <copy
