//! `count` and `preset`: the scenario with them is the one in which all is written out.

use lastmile_sim::network::tcp::TcpConfig;
use lastmile_sim::scenario::{Override, Scenario};

/// LDA's wireless last hop: as many flows as clients, each with a last link of its own.
const SHORT: &str = include_str!("../scenarios/copies.toml");

fn parse(text: &str, set: &[(&str, &str)]) -> Result<Scenario, String> {
    let set: Vec<_> = set.iter().map(|&(key, value)| Override::new(key, value)).collect();
    Scenario::parse_with("copies.toml", text, &set).map_err(|error| error.to_string())
}

#[test]
fn copies_are_what_one_would_write_out() {
    assert_eq!(
        parse(SHORT, &[]).unwrap(),
        parse(include_str!("../scenarios/copies-written.toml"), &[]).unwrap()
    );
}

#[test]
fn counts_are_swept_and_bounded() {
    let set = [("host.client.count", "128"), ("traffic.tcp.count", "128")];
    let scenario = parse(SHORT, &set).unwrap();
    assert_eq!((scenario.hosts.len(), scenario.links.len(), scenario.traffic.len()), (129, 258, 256));
    assert_eq!((scenario.hosts[10].name.as_str(), scenario.hosts[10].v4.octets()[3]), ("client-10", 11));
    let one = parse(SHORT, &[("host.client.count", "1"), ("traffic.tcp.count", "1")]).unwrap();
    assert_eq!(one.traffic[0].name, "tcp-1", "a copy is called alike however many there are");
    let many = [("host.client.count", "251"), ("traffic.tcp.count", "251")];
    assert!(parse(SHORT, &many).unwrap_err().contains("more than 250 hosts"));
    for (key, value, why) in [
        ("traffic.tcp.count", "3", "copies.toml:23: traffic[0].to: 2 of these for 3 copies"),
        ("host.client.count", "-1", "a count is a number from 0 to 20000"),
        ("host.client.count", "0", "copies.toml:23: traffic[0].to: 0 of these for 4 copies"),
        ("host.client.address", "10.0.0.1", "copies have addresses of their own"),
        ("link.0.count", "2", "unknown field `count`"),
    ] {
        let error = parse(SHORT, &[(key, value)]).unwrap_err();
        assert!(error.contains(why), "{key} = {value}: {error}");
    }
}

#[test]
fn a_flow_without_a_name_is_called_by_its_place() {
    let stream = "[[stream]]\nfrom = \"server\"\nto = \"client\"\nrate = \"1 Mbit/s\"\n";
    let scenario =
        parse(&[SHORT, stream, "count = 4\n", stream, stream, "count = 0\n"].concat(), &[]).unwrap();
    let names: Vec<_> = scenario.roles.stream.iter().map(|stream| stream.name.as_str()).collect();
    assert_eq!(names[..4], ["stream0-1", "stream0-2", "stream0-3", "stream0-4"]);
    // One for each client that it goes to, and none of which there are none.
    assert_eq!(names[4..], ["stream1-1", "stream1-2"]);
}

#[test]
fn every_copy_draws_its_own_numbers() {
    let scenario = parse(SHORT, &[]).unwrap();
    let starts: Vec<_> = scenario.traffic.iter().map(|flow| flow.starts(1)).collect();
    // A stream in the place of traffic starts when that would.
    let stream = "[[stream]]\nname = \"late\"\nfrom = \"server\"\nto = \"client\"\nrate = \"1 kbit/s\"\nstart_within = \"2 s\"\n";
    let streams = parse(&[SHORT, stream].concat(), &[]).unwrap().roles.stream;
    let traffic = "[[traffic]]\nname = \"late\"\nkind = \"ftp\"\nfrom = \"server\"\nto = \"client\"\nstart_within = \"2 s\"\n";
    let traffic = parse(&[SHORT, traffic].concat(), &[]).unwrap().traffic;
    assert_eq!(streams[0].starts(7), traffic[traffic.len() - 2].starts(7));
    let mut apart = starts[..4].to_vec();
    apart.sort_unstable();
    apart.dedup();
    assert_eq!(apart.len(), 4, "{starts:?}");
    assert!(starts[..4].iter().all(|start| start.as_nanos() < 2_000_000_000) && starts[4].as_nanos() == 0);
}

#[test]
fn a_preset_fills_what_is_not_said() {
    let two = "name = \"x\"\nduration = \"1 s\"\n[host]\na = {}\nb = {}\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\n";
    let tcp = |options: &str, set: &[(&str, &str)]| {
        let flow = "[[traffic]]\nkind = \"ftp\"\nfrom = \"a\"\nto = \"b\"\ntcp = ";
        parse(&[two, flow, options].concat(), set).unwrap().traffic[0].tcp.clone().unwrap().config
    };
    assert_eq!(tcp("{ preset = \"ns2\" }", &[]), TcpConfig::ns2());
    let linux = tcp("{ segment = \"500 B\", preset = \"linux\" }", &[]);
    assert_eq!((linux.segment.0, linux.initial_window), (500, Some(10)));
    assert_eq!(tcp("{ preset = \"linux\" }", &[("traffic.0.tcp.preset", "ns2")]), TcpConfig::ns2());
}
