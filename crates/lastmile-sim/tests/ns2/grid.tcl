# TFRC alone over independent losses, for grid.rs.
# ns grid.tcl <round trip in ms> <loss> <own|4R> <seconds> <seed> ?Class.variable=value ...?
# prints the rate that was sent, in kbit/s of packets of 1000 B.
foreach {rtt loss timeout seconds seed} $argv break
foreach option [lrange $argv 5 end] {
  regexp {^(.*)\.(.*)=(.*)$} $option all class variable value
  $class set $variable $value
}
set ns [new Simulator]
set near [$ns node]; set air [$ns node]; set far [$ns node]
$ns duplex-link $near $air 100Mb [expr $rtt / 2.0]ms DropTail
$ns queue-limit $near $air 10000; $ns queue-limit $air $near 10000
$ns duplex-link $air $far 10000Mb 0ms DropTail
set numbers [new RNG]; $numbers seed [expr 1000 * $seed + 7]
set uniform [new RandomVariable/Uniform]; $uniform use-rng $numbers
set losses [new ErrorModel]; $losses unit pkt; $losses set rate_ $loss
$losses ranvar $uniform; $losses drop-target [new Agent/Null]
$ns lossmodel $losses $air $far
set sender [new Agent/TFRC]; set sink [new Agent/TFRCSink]
$sender set packetSize_ 1000; $sender set useHeaders_ false
# The round-trip time does not change, so that four of them are the least t_RTO, above what a fine clock gives.
if {$timeout == "4R"} { $sender set tcp_tick_ 0.001; $sender set minrto_ [expr 4 * $rtt / 1000.0] }
$ns attach-agent $near $sender; $ns attach-agent $far $sink; $ns connect $sender $sink
$ns at 0 "$sender start"
$ns at $seconds { puts [expr 8.0 * [$sender set ndatapack_] / $seconds]; exit 0 }
$ns run
