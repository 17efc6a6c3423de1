# Perl's threads clone the interpreter: much memory traffic for each.
use strict;
use warnings;
use threads;
use threads::shared;
my $sum :shared = 0;
my @threads = map { my $n = $_; threads->create(sub { for (1 .. 200) { lock $sum; $sum += $n } return $n }) } 1 .. 6;
my $joined = 0;
$joined += $_->join for @threads;
print "sum $sum joined $joined\n";
