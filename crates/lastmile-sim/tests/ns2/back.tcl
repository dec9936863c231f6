# TFRC beside four FTPs over the TFRC Probe paper's figure 3, whose way back is slow, for back.rs.
# ns back.tcl <forward Mbit/s> <back kbit/s> <NumFeedback_> <seconds> <seed>
# prints the rate that TFRC sent, in kbit/s of packets of 1000 B.
foreach {forward back messages seconds seed} $argv break
set ns [new Simulator]
set starts [new RNG]; $starts seed [expr 1000 * $seed + 11]
foreach name {n1 r2 r3 r4 r5 n6 n7 n8 n9 n10 n11 n12 n13 n14} { set $name [$ns node] }
foreach {one other} [list $n1 $r2 $r2 $r3 $r4 $r5 $r5 $n6 $n7 $r2 $n10 $r5 $n8 $r3 $n9 $r4 $n11 $r2 $n14 $r5 $n12 $r3 $n13 $r4] {
  $ns duplex-link $one $other 10Mb 5ms DropTail
  $ns queue-limit $one $other 1000; $ns queue-limit $other $one 1000
}
$ns simplex-link $r3 $r4 ${forward}Mb 10ms DropTail; $ns queue-limit $r3 $r4 21
$ns simplex-link $r4 $r3 ${back}Kb 10ms DropTail; $ns queue-limit $r4 $r3 51
foreach {from to} [list $n7 $n10 $n8 $n9 $n11 $n14 $n12 $n13] {
  set tcp [new Agent/TCP/Sack1]; set sink [new Agent/TCPSink/Sack1]
  $tcp set packetSize_ 960; $tcp set window_ 1000
  $ns attach-agent $from $tcp; $ns attach-agent $to $sink; $ns connect $tcp $sink
  set ftp [new Application/FTP]; $ftp attach-agent $tcp
  $ns at [$starts uniform 0 1] "$ftp start"
}
set tfrc [new Agent/TFRC]; set counts [new Agent/TFRCSink]
$tfrc set packetSize_ 1000; $tfrc set useHeaders_ false; $counts set NumFeedback_ $messages
$ns attach-agent $n1 $tfrc; $ns attach-agent $n6 $counts; $ns connect $tfrc $counts
$ns at [$starts uniform 0 1] "$tfrc start"
$ns at $seconds { puts [expr 8.0 * [$tfrc set ndatapack_] / $seconds]; exit 0 }
$ns run
