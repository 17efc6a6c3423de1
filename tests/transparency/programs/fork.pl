# Forks with pipes back, a chain of pipes, signals among processes.
use strict;
use warnings;
$| = 1;
my ($sum, %pid) = (0);
for my $i (1 .. 20) {
    pipe(my $r, my $w) or die;
    my $pid = fork // die;
    if (!$pid) { close $r; print $w $i * $i; exit $i; }
    close $w;
    $sum += <$r>;
    $pid{$pid} = $i;
}
my $reaped = 0;
while ((my $pid = wait) > 0) { $reaped++ if $? >> 8 == $pid{$pid}; }
print "reaped $reaped, sum $sum\n";
my $got = 0;
$SIG{USR1} = sub { $got++ };
my $child = fork // die;
if (!$child) { kill 'USR1', getppid; exit 0 }
waitpid $child, 0;
select undef, undef, undef, 0.05;
print "signals $got\n";
open my $out, '-|', 'seq 5 | tac' or die;
print while <$out>;
close $out;
print `echo backquote`;
local $SIG{ALRM} = sub { die "alarm\n" };
alarm 1;
eval { sleep 20 };
print $@;
