# TFRC beside SACK TCP over RED, for red.rs.
# ns red.tcl <of each> <plain|delayed> <own|4R> <seconds> <seed>
# prints TFRC's share of what RED's link carried, in percent.
foreach {flows acks timeout seconds seed} $argv break
set ns [new Simulator]
$defaultRNG seed [expr 1000 * $seed + 7]
set starts [new RNG]; $starts seed [expr 1000 * $seed + 11]
set near [$ns node]; set far [$ns node]
Queue/RED set thresh_ 10; Queue/RED set maxthresh_ 30; Queue/RED set q_weight_ 0.002; Queue/RED set linterm_ 10
Queue/RED set gentle_ true; Queue/RED set wait_ true; Queue/RED set bytes_ false; Queue/RED set queue_in_bytes_ false
Queue/RED set mean_pktsize_ 1000; Queue/RED set adaptive_ 0; Queue/RED set use_mark_p_ false
$ns simplex-link $near $far 4Mb 40ms RED; $ns queue-limit $near $far 100
$ns simplex-link $far $near 100Mb 40ms DropTail; $ns queue-limit $far $near 10000
set monitor [$ns monitor-queue $near $far [open /dev/null w] 0.1]
set sink Agent/TCPSink/Sack1
if {$acks == "delayed"} { append sink /DelAck }
for {set i 0} {$i < $flows} {incr i} {
  set tfrc($i) [new Agent/TFRC]; set counts($i) [new Agent/TFRCSink]
  $tfrc($i) set packetSize_ 1000; $tfrc($i) set useHeaders_ false
  if {$timeout == "4R"} { $tfrc($i) set tcp_tick_ 0.001 }
  $ns attach-agent $near $tfrc($i); $ns attach-agent $far $counts($i); $ns connect $tfrc($i) $counts($i)
  $ns at [$starts uniform 0 5] "$tfrc($i) start"
  set tcp [new Agent/TCP/Sack1]; set takes($i) [new $sink]
  $tcp set packetSize_ 960; $tcp set window_ 1000
  $ns attach-agent $near $tcp; $ns attach-agent $far $takes($i); $ns connect $tcp $takes($i)
  set ftp [new Application/FTP]; $ftp attach-agent $tcp
  $ns at [$starts uniform 0 5] "$ftp start"
}
# Four times the round-trip time, as RED's mean queue makes it, is the least t_RTO.
if {$timeout == "4R"} {
  set queue [[$ns link $near $far] queue]
  proc follow {} {
    global ns queue tfrc flows
    for {set i 0} {$i < $flows} {incr i} {
      $tfrc($i) set minrto_ [expr 4 * (0.082 + 0.002 * [$queue set ave_])]
    }
    $ns at [expr [$ns now] + 0.05] follow
  }
  $ns at 0 follow
}
$ns at $seconds {
  set bytes 0
  for {set i 0} {$i < $flows} {incr i} { set bytes [expr $bytes + [$counts($i) set bytes_]] }
  puts [expr 100.0 * $bytes / [$monitor set bdepartures_]]
  exit 0
}
$ns run
