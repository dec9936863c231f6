# usage: ns dumbbell.tcl <simulated seconds> <flows>
# TCP NewReno with delayed ACKs over 100 Mbit/s, 10 ms, DropTail of 200 packets; access 1 Gbit/s, 1 ms.
foreach {dur flows} $argv break
set ns [new Simulator]; $ns use-scheduler Heap
set a [$ns node]; set b [$ns node]
$ns duplex-link $a $b 100Mb 10ms DropTail; $ns queue-limit $a $b 200; $ns queue-limit $b $a 10000
for {set i 0} {$i < $flows} {incr i} {
  set s($i) [$ns node]; set d($i) [$ns node]
  $ns duplex-link $s($i) $a 1000Mb 1ms DropTail; $ns queue-limit $s($i) $a 10000
  $ns duplex-link $d($i) $b 1000Mb 1ms DropTail; $ns queue-limit $b $d($i) 10000
  set t($i) [new Agent/TCP/Newreno]; set k($i) [new Agent/TCPSink/DelAck]
  $t($i) set packetSize_ 1460; $t($i) set window_ 3000
  $ns attach-agent $s($i) $t($i); $ns attach-agent $d($i) $k($i); $ns connect $t($i) $k($i)
  set f [new Application/FTP]; $f attach-agent $t($i); $ns at [expr 0.1 + 0.5*$i/$flows] "$f start"
}
$ns at $dur {
  set v 0
  for {set i 0} {$i < $flows} {incr i} { set v [expr $v + [$t($i) set ack_]] }
  puts "packets $v"; exit 0
}
$ns run
