set sum 0
for {set i 0} {$i < 100000} {incr i} {incr sum [expr {$i % 7}]}
puts $sum
puts [exec sh -c "echo child; seq 3" | tac]
catch {exec sh -c "exit 4"} message options
puts [lindex [dict get $options -errorcode] 0]
after 30 {set ready 1}
vwait ready
puts [regexp -inline {(\w+)@(\w+)} user@host]
puts [catch {exec false}]
