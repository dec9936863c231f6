# What same_losses.rs holds: LDA's paths with losses that both programs draw alike, by packet number.
# ns same_losses.tcl <wlh|wb> <Reno|Newreno|Sack1|Vegas> <options: any of delayed, old, or -> <single|bursts> <loss> <seed>
# prints what the bottleneck carried from 22 to 222 s, in percent of its rate.
foreach {topo kind options losses rate seed} $argv break
set old [string match *old* $options]
set delayed [string match *delayed* $options]
if {$old} { Agent/TCP set tcpTick_ 0.1; Agent/TCP set minrto_ 1.0; Agent/TCP set singledup_ 0; Agent/TCP set windowInit_ 1 }
# Bandwidths, delays and queues, and which link is the bottleneck; the losses come behind it.
if {$topo == "wlh"} {
  set links {{10Mb 1ms 166} {260Kb 20ms 6} {150Kb 10ms 6}}; set bottleneck 2; set capacity 150e3
} else {
  set links {{10Mb 1ms 166} {800Kb 20ms 13} {10Mb 1ms 166}}; set bottleneck 1; set capacity 800e3
}
set ns [new Simulator]
set nodes [list [$ns node]]
foreach link [concat $links {{10Gb 0ms 100000}}] {
  foreach {bandwidth delay queue} $link break
  set here [lindex $nodes end]; set next [$ns node]; lappend nodes $next
  $ns duplex-link $here $next $bandwidth $delay DropTail
  $ns queue-limit $here $next $queue; $ns queue-limit $next $here 166
}
# Lehmer's generator: a packet is lost, or the state changes, where the draw is below the probability.
set x [expr {1000003 * $seed}]
proc below {p} { global x; set x [expr {(16807 * $x) % 2147483647}]; return [expr {$x < int($p * 2147483647)}] }
set lost {}; set bad 0
for {set i 0} {$i < 30000} {incr i} {
  if {$losses == "single"} { set bad [below $rate]
  } elseif {$bad} { if {[below [expr {1.0/3}]]} { set bad 0 }
  } elseif {[below [expr {$rate / (1 - $rate) / 3}]]} { set bad 1 }
  if {$bad} { lappend lost $i }
}
set channel [new ErrorModel/List]; $channel unit pkt; $channel droplist $lost; $channel drop-target [new Agent/Null]
$ns lossmodel $channel [lindex $nodes [expr $bottleneck + 1]] [lindex $nodes [expr $bottleneck + 2]]
set tcp [new Agent/TCP/$kind]
set sink Agent/TCPSink
if {$kind == "Sack1"} { append sink /Sack1 }
if {$delayed} { append sink /DelAck }
set sink [new $sink]
$tcp set packetSize_ 722; $tcp set window_ 1000
# Vegas alone sends packets of just that size.
if {$kind == "Vegas"} { $tcp set packetSize_ 762 }
$ns attach-agent [lindex $nodes 0] $tcp; $ns attach-agent [lindex $nodes end] $sink; $ns connect $tcp $sink
set ftp [new Application/FTP]; $ftp attach-agent $tcp
$ns at 0.5 "$ftp start"
set monitor [$ns monitor-queue [lindex $nodes $bottleneck] [lindex $nodes [expr $bottleneck + 1]] [open /dev/null w] 1]
$ns at 22 { set before [$monitor set bdepartures_] }
$ns at 222 { puts [expr 100 * ([$monitor set bdepartures_] - $before) * 8 / 200 / $capacity]; exit 0 }
$ns run
