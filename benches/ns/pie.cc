// usage: pie --kind=udp|tcp --load=FACTOR --flows=N --rtt=MS --derandomize=0|1 --seed=N --dur=SECONDS
// PIE (RFC 8033) before a link of 10 Mbit/s: mean sojourn time in the queue, goodput and drops from 10 s on.
// udp: Poisson arrivals of 1000 B packets at load times the link's rate; tcp: N flows of Linux's Reno.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include <cstdio>
using namespace ns3;

static double waited = 0;
static uint64_t left = 0, bytes = 0;
static double from = 10;

static void Sojourn(Time delay) {
  if (Simulator::Now() >= Seconds(from)) {
    waited += delay.GetSeconds();
    left++;
  }
}

static void Received(Ptr<const Packet> packet, const Address&) {
  if (Simulator::Now() >= Seconds(from)) bytes += packet->GetSize();
}

class Poisson : public Application {
 public:
  Ptr<Socket> socket;
  Ptr<ExponentialRandomVariable> gap;
  uint32_t size;
  void StartApplication() override { Send(); }
  void Send() {
    socket->Send(Create<Packet>(size));
    Simulator::Schedule(Seconds(gap->GetValue()), &Poisson::Send, this);
  }
};

int main(int argc, char** argv) {
  std::string kind = "udp";
  double load = 1.1, dur = 110;
  int flows = 4, rtt = 100, seed = 1;
  bool derandomize = false;
  CommandLine cmd;
  cmd.AddValue("kind", "udp or tcp", kind);
  cmd.AddValue("load", "of the link's rate (udp)", load);
  cmd.AddValue("flows", "TCP flows", flows);
  cmd.AddValue("rtt", "base round trip in ms", rtt);
  cmd.AddValue("derandomize", "UseDerandomization", derandomize);
  cmd.AddValue("seed", "run number", seed);
  cmd.AddValue("dur", "simulated seconds", dur);
  cmd.Parse(argc, argv);
  RngSeedManager::SetRun(seed);
  Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpLinuxReno"));
  Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
  Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
  Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1460));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 22));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 22));
  Config::SetDefault("ns3::PieQueueDisc::MeanPktSize", UintegerValue(1000));
  Config::SetDefault("ns3::PieQueueDisc::A", DoubleValue(0.125));
  Config::SetDefault("ns3::PieQueueDisc::B", DoubleValue(1.25));
  Config::SetDefault("ns3::PieQueueDisc::Tupdate", TimeValue(MilliSeconds(15)));
  Config::SetDefault("ns3::PieQueueDisc::QueueDelayReference", TimeValue(MilliSeconds(15)));
  Config::SetDefault("ns3::PieQueueDisc::MaxBurstAllowance", TimeValue(MilliSeconds(150)));
  Config::SetDefault("ns3::PieQueueDisc::UseDequeueRateEstimator", BooleanValue(false));
  Config::SetDefault("ns3::PieQueueDisc::UseCapDropAdjustment", BooleanValue(true));
  Config::SetDefault("ns3::PieQueueDisc::UseEcn", BooleanValue(false));
  Config::SetDefault("ns3::PieQueueDisc::UseDerandomization", BooleanValue(derandomize));
  Config::SetDefault("ns3::PieQueueDisc::MaxSize", StringValue("200p"));
  NodeContainer senders, receivers, routers;
  int n = kind == "udp" ? 1 : flows;
  senders.Create(n);
  receivers.Create(n);
  routers.Create(2);
  InternetStackHelper stack;
  stack.Install(senders);
  stack.Install(receivers);
  stack.Install(routers);
  char text[32];
  PointToPointHelper bottleneck;
  bottleneck.SetDeviceAttribute("DataRate", StringValue("10Mbps"));
  snprintf(text, sizeof text, "%dus", (rtt - 4) * 500);
  bottleneck.SetChannelAttribute("Delay", StringValue(text));
  bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
  PointToPointHelper access;
  access.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
  access.SetChannelAttribute("Delay", StringValue("1ms"));
  auto devices = bottleneck.Install(routers);
  TrafficControlHelper pie, fifo;
  pie.SetRootQueueDisc("ns3::PieQueueDisc");
  fifo.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue("1000p"));
  auto queue = pie.Install(devices.Get(0)).Get(0);
  fifo.Install(devices.Get(1));
  queue->TraceConnectWithoutContext("SojournTime", MakeCallback(&Sojourn));
  Ipv4AddressHelper address;
  address.SetBase("10.1.0.0", "255.255.255.0");
  address.Assign(devices);
  auto start = CreateObject<UniformRandomVariable>();
  for (int i = 0; i < n; i++) {
    auto in = access.Install(senders.Get(i), routers.Get(0));
    auto out = access.Install(routers.Get(1), receivers.Get(i));
    snprintf(text, sizeof text, "10.2.%d.0", i);
    address.SetBase(text, "255.255.255.0");
    address.Assign(in);
    snprintf(text, sizeof text, "10.3.%d.0", i);
    address.SetBase(text, "255.255.255.0");
    auto ends = address.Assign(out);
    InetSocketAddress to(ends.GetAddress(1), 5000);
    bool udp = kind == "udp";
    const char* factory = udp ? "ns3::UdpSocketFactory" : "ns3::TcpSocketFactory";
    PacketSinkHelper sink(factory, InetSocketAddress(Ipv4Address::GetAny(), 5000));
    sink.Install(receivers.Get(i)).Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Received));
    if (udp) {
      auto source = CreateObject<Poisson>();
      source->size = 1000 - 28;
      source->gap = CreateObject<ExponentialRandomVariable>();
      source->gap->SetAttribute("Mean", DoubleValue(8000 / (load * 10e6)));
      source->socket = Socket::CreateSocket(senders.Get(i), UdpSocketFactory::GetTypeId());
      senders.Get(i)->AddApplication(source);
      source->SetStartTime(Seconds(0.1));
      Simulator::Schedule(Seconds(0.05), [source, to] { source->socket->Connect(to); });
    } else {
      BulkSendHelper bulk(factory, to);
      bulk.SetAttribute("SendSize", UintegerValue(1460));
      bulk.Install(senders.Get(i)).Start(Seconds(start->GetValue()));
    }
  }
  Ipv4GlobalRoutingHelper::PopulateRoutingTables();
  Simulator::Stop(Seconds(dur));
  Simulator::Run();
  auto stats = queue->GetStats();
  printf("delay_ms %.4f goodput_mbps %.4f dropped %u of %u\n", 1e3 * waited / left, bytes * 8e-6 / (dur - from),
         stats.nTotalDroppedPackets, stats.nTotalReceivedPackets);
  Simulator::Destroy();
}
