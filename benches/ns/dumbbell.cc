// usage: dumbbell --dur=SECONDS --flows=N
// TCP (Reno of Linux, delayed ACKs) over 100 Mbit/s, 10 ms, FIFO of 200 packets; access 1 Gbit/s, 1 ms.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include <cstdio>
using namespace ns3;

int main(int argc, char** argv) {
  int flows = 10;
  double dur = 15;
  CommandLine cmd;
  cmd.AddValue("flows", "TCP flows", flows);
  cmd.AddValue("dur", "simulated seconds", dur);
  cmd.Parse(argc, argv);
  Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpLinuxReno"));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 22));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 22));
  NodeContainer left, right, routers;
  left.Create(flows);
  right.Create(flows);
  routers.Create(2);
  InternetStackHelper stack;
  stack.Install(left);
  stack.Install(right);
  stack.Install(routers);
  PointToPointHelper bottleneck;
  bottleneck.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
  bottleneck.SetChannelAttribute("Delay", StringValue("10ms"));
  bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
  PointToPointHelper access;
  access.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
  access.SetChannelAttribute("Delay", StringValue("1ms"));
  auto devices = bottleneck.Install(routers);
  TrafficControlHelper fifo;
  fifo.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("200p"));
  auto queues = fifo.Install(devices);
  Ipv4AddressHelper address;
  address.SetBase("10.1.0.0", "255.255.255.0");
  address.Assign(devices);
  for (int i = 0; i < flows; i++) {
    auto in = access.Install(left.Get(i), routers.Get(0));
    auto out = access.Install(routers.Get(1), right.Get(i));
    char base[32];
    snprintf(base, sizeof base, "10.%d.%d.0", 2 + i / 250, i % 250);
    address.SetBase(base, "255.255.255.0");
    address.Assign(in);
    snprintf(base, sizeof base, "10.%d.%d.0", 102 + i / 250, i % 250);
    address.SetBase(base, "255.255.255.0");
    auto ends = address.Assign(out);
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
    sink.Install(right.Get(i));
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(ends.GetAddress(1), 5000));
    bulk.Install(left.Get(i)).Start(Seconds(0.1 + 0.5 * i / flows));
  }
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();
  Simulator::Stop(Seconds(dur));
  Simulator::Run();
  printf("packets %u\n", queues.Get(0)->GetStats().nTotalDequeuedPackets);
  Simulator::Destroy();
}
