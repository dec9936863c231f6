# usage: ns wlan.tcl <simulated seconds> <stations>
# Saturated stations to one receiver, 1500-byte IP packets: 802.11b, 11 Mbit/s, long preamble, ACK at 2 Mbit/s, no RTS.
foreach {dur n} $argv break
Mac/802_11 set dataRate_ 11Mb; Mac/802_11 set basicRate_ 2Mb; Mac/802_11 set RTSThreshold_ 3000
Mac/802_11 set CWMin_ 31; Mac/802_11 set CWMax_ 1023; Mac/802_11 set SlotTime_ 0.00002; Mac/802_11 set SIFS_ 0.00001
Mac/802_11 set PreambleLength_ 144; Mac/802_11 set PLCPHeaderLength_ 48; Mac/802_11 set PLCPDataRate_ 1.0e6
Phy/WirelessPhy set CPThresh_ 1000.0
set ns [new Simulator]; $ns use-scheduler Heap
set topo [new Topography]; $topo load_flatgrid 200 200; create-god [expr $n+1]
$ns trace-all [open /dev/null w]
$ns node-config -adhocRouting DumbAgent -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 50 \
  -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy -topoInstance $topo \
  -agentTrace OFF -routerTrace OFF -macTrace OFF -movementTrace OFF -channel [new Channel/WirelessChannel]
for {set i 0} {$i <= $n} {incr i} {
  set nd($i) [$ns node]; $nd($i) random-motion 0; set a [expr 6.283185*$i/$n]
  if {$i == $n} { set x 100; set y 100 } else { set x [expr 100+5*cos($a)]; set y [expr 100+5*sin($a)] }
  $nd($i) set X_ $x; $nd($i) set Y_ $y; $nd($i) set Z_ 0
}
for {set i 0} {$i < $n} {incr i} {
  set u [new Agent/UDP]; $u set packetSize_ 3000; set k($i) [new Agent/LossMonitor]
  $ns attach-agent $nd($i) $u; $ns attach-agent $nd($n) $k($i); $ns connect $u $k($i)
  set c [new Application/Traffic/CBR]; $c set packetSize_ 1500; $c set rate_ 2Mb; $c attach-agent $u
  $ns at [expr 0.1 + 0.013*$i] "$c start"
}
$ns at $dur {
  set v 0
  for {set i 0} {$i < $n} {incr i} { set v [expr $v + [$k($i) set npkts_]] }
  puts "packets $v"; exit 0
}
$ns run
