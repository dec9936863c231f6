// usage: wlan --dur=SECONDS --n=STATIONS --std=b|g
// Saturated stations to an access point, 1500-byte IP packets, no RTS, no QoS.
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"
#include <cmath>
#include <cstdio>
using namespace ns3;

static uint64_t received = 0;
static void Received(Ptr<const Packet>, const Address&) { received++; }

int main(int argc, char** argv) {
  std::string standard = "g";
  int n = 10;
  double dur = 15;
  CommandLine cmd;
  cmd.AddValue("std", "b or g", standard);
  cmd.AddValue("n", "stations", n);
  cmd.AddValue("dur", "simulated seconds", dur);
  cmd.Parse(argc, argv);
  Config::SetDefault("ns3::WifiMacQueue::MaxSize", StringValue("400p"));
  Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(100)));
  Config::SetDefault("ns3::ArpCache::AliveTimeout", TimeValue(Seconds(10000)));
  Config::SetDefault("ns3::ArpCache::PendingQueueSize", UintegerValue(100));
  Config::SetDefault("ns3::WifiPhy::ShortPlcpPreambleSupported", BooleanValue(false));
  NodeContainer stations, ap;
  stations.Create(n);
  ap.Create(1);
  YansWifiChannelHelper channel;
  channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
  channel.AddPropagationLoss("ns3::FixedRssLossModel", "Rss", DoubleValue(-50));
  YansWifiPhyHelper phy;
  phy.SetChannel(channel.Create());
  WifiHelper wifi;
  bool g = standard == "g";
  wifi.SetStandard(g ? WIFI_STANDARD_80211g : WIFI_STANDARD_80211b);
  wifi.SetRemoteStationManager(
      "ns3::ConstantRateWifiManager", "DataMode", StringValue(g ? "ErpOfdmRate54Mbps" : "DsssRate11Mbps"), "ControlMode",
      StringValue(g ? "ErpOfdmRate24Mbps" : "DsssRate2Mbps"), "RtsCtsThreshold", UintegerValue(99999));
  WifiMacHelper mac;
  Ssid ssid("bench");
  mac.SetType("ns3::StaWifiMac", "Ssid", SsidValue(ssid));
  auto stationDevices = wifi.Install(phy, mac, stations);
  mac.SetType("ns3::ApWifiMac", "Ssid", SsidValue(ssid));
  auto apDevices = wifi.Install(phy, mac, ap);
  MobilityHelper mobility;
  mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
  auto positions = CreateObject<ListPositionAllocator>();
  positions->Add(Vector(0, 0, 0));
  for (int i = 0; i < n; i++) positions->Add(Vector(std::cos(i), std::sin(i), 0));
  mobility.SetPositionAllocator(positions);
  mobility.Install(ap);
  mobility.Install(stations);
  InternetStackHelper stack;
  stack.Install(stations);
  stack.Install(ap);
  Ipv4AddressHelper address;
  address.SetBase("10.0.0.0", "255.255.255.0");
  auto apAddress = address.Assign(apDevices);
  address.Assign(stationDevices);
  TrafficControlHelper none;
  none.Uninstall(apDevices);
  none.Uninstall(stationDevices);
  double mbps = (g ? 54 : 11) * 0.75 / 5;
  for (int i = 0; i < n; i++) {
    PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9000 + i));
    sink.Install(ap.Get(0)).Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Received));
    UdpClientHelper client(apAddress.GetAddress(0), 9000 + i);
    client.SetAttribute("MaxPackets", UintegerValue(4000000000u));
    client.SetAttribute("PacketSize", UintegerValue(1500 - 28));
    client.SetAttribute("Interval", TimeValue(Seconds(1500 * 8 / (mbps * 1e6))));
    client.Install(stations.Get(i)).Start(Seconds(0.5 + 0.001 * i));
  }
  Simulator::Stop(Seconds(dur));
  Simulator::Run();
  printf("packets %lu\n", (unsigned long)received);
  Simulator::Destroy();
}
