//! The runs of WBest: fourteen cases, the tools, and what the paper leaves open.

use crate::papers::Case;

/// The cases, and those with TCP; in case 6 the truth is not known [table II].
pub(super) const CASES: [usize; 14] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13];
pub(super) const WITH_TCP: [usize; 7] = [3, 4, 7, 8, 10, 11, 12];
pub(super) const UNKNOWN: usize = 6;
/// The case whose channel is bad.
pub(super) const BAD: usize = 13;

/// A tool with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Wbest,
    /// This program's WBest by its defaults.
    Ours,
    Ptr,
    Chirp,
    /// With the load that makes 0.45 MB in 17.4 s.
    LightChirp,
    Pathload,
}

/// The paper's four tools, in its order; and all that are run.
pub(super) const OF_THE_PAPER: [Tool; 4] = [Tool::Ptr, Tool::Chirp, Tool::Pathload, Tool::Wbest];
pub(super) const TOOLS: [Tool; 6] =
    [Tool::Ptr, Tool::Chirp, Tool::LightChirp, Tool::Pathload, Tool::Wbest, Tool::Ours];

impl Tool {
    pub(super) fn name(self) -> &'static str {
        match self {
            Tool::Wbest => "WBest",
            Tool::Ours => "our default",
            Tool::Ptr => "IGI/PTR",
            Tool::Chirp => "pathChirp 0.3",
            Tool::LightChirp => "pathChirp 0.207",
            Tool::Pathload => "Pathload",
        }
    }

    /// The start of its columns in the paper's tables II and III; our default has none.
    pub(super) fn column(self) -> Option<&'static str> {
        match self {
            Tool::Wbest => Some("wbest"),
            Tool::Ours => None,
            Tool::Ptr => Some("igi_ptr"),
            Tool::Chirp | Tool::LightChirp => Some("pathchirp"),
            Tool::Pathload => Some("pathload"),
        }
    }

    /// As `[[measure]]` takes it.
    pub(super) fn method(self) -> &'static str {
        match self {
            Tool::Wbest => "wbest(faithful=true)",
            Tool::Ours => "wbest",
            Tool::Ptr => "ptr(faithful=true)",
            Tool::Chirp => "pathchirp(faithful=true,converged_below=6 Mbit/s,means=25)",
            Tool::LightChirp => {
                "pathchirp(faithful=true,converged_below=6 Mbit/s,means=25,average_load=207 kbit/s)"
            }
            Tool::Pathload => "pathload(faithful=true,max_fleets=100,max_span=600 s)",
        }
    }
}

/// Flow of other traffic: `cross`, `contend`, `tcp-cross`, `tcp-contend`, to or from a client, with its Mbit/s.
type Flow = (&'static str, char, Option<f64>);

/// The other traffic of a case [table I].
pub(super) fn flows(id: usize) -> &'static [Flow] {
    const DOWN: &str = "cross";
    const UP: &str = "contend";
    const TCP_DOWN: &str = "tcp-cross";
    const TCP_UP: &str = "tcp-contend";
    match id {
        1 => &[(DOWN, 'B', Some(4.6))],
        2 => &[(UP, 'B', Some(4.6))],
        3 => &[(TCP_DOWN, 'B', None)],
        4 => &[(TCP_UP, 'B', None)],
        5 => &[(DOWN, 'B', Some(2.3)), (DOWN, 'C', Some(2.3))],
        6 => &[(UP, 'B', Some(2.3)), (UP, 'C', Some(2.3))],
        7 => &[(TCP_DOWN, 'B', None), (TCP_DOWN, 'C', None)],
        8 => &[(TCP_UP, 'B', None), (TCP_UP, 'C', None)],
        9 => &[(DOWN, 'B', Some(2.3)), (UP, 'C', Some(2.3))],
        10 => &[(TCP_DOWN, 'B', None), (TCP_UP, 'C', None)],
        11 => &[(DOWN, 'B', Some(2.3)), (TCP_UP, 'C', None)],
        12 => &[(TCP_DOWN, 'B', None), (UP, 'C', Some(2.3))],
        _ => &[],
    }
}

/// Set-up of the cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SetUp {
    /// 802.11n with A-MPDU.
    pub(super) n: bool,
    /// Rate at which stations that contend send, in Mbit/s, or the name of their rate control, which all stations have then.
    pub(super) contends: &'static str,
    /// Size of the packets that contend.
    pub(super) size: u32,
    /// Packets that the access point queues.
    pub(super) queue: u32,
    /// TCP's law, its recovery, and the receiver's window in segments.
    pub(super) tcp: (&'static str, &'static str, u32),
    /// Resolution of A's stamps, if they are not exact.
    pub(super) stamps: Option<&'static str>,
}

/// The paper's testbed as far as it says it, and our choice where it does not.
pub(super) const TESTBED: SetUp =
    SetUp { n: false, contends: "24", size: 1_500, queue: 100, tcp: ("reno", "newreno", 120), stamps: None };
/// The same cases on 802.11n.
pub(super) const AGGREGATING: SetUp = SetUp { n: true, contends: "26", ..TESTBED };
/// With the longest queue of the access point.
pub(super) const LONG_QUEUE: SetUp = SetUp { queue: 300, ..TESTBED };
/// Where A's stamps are those of a clock that ticks each half millisecond.
pub(super) const COARSE: SetUp = SetUp { stamps: Some("500 us"), ..TESTBED };

impl SetUp {
    /// A case, without what is measured.
    fn loaded(self, id: usize) -> Case {
        let case = Case::new(match (self.n, id == BAD) {
            (false, false) => "ap",
            (false, true) => "ap-13",
            (true, false) => "ap-n",
            (true, true) => "ap-n-13",
        });
        let case = match self.queue {
            100 => case,
            queue => case.set("wlan.0.station.ap.queue", queue),
        };
        let case = match self.stamps {
            None => case,
            Some(resolution) => case.set("host.A.clock.resolution", resolution),
        };
        flows(id).iter().fold(case, |case, &(kind, client, rate)| {
            let key = |key: &str| format!("traffic.{kind}-{client}.{key}");
            let station = |key: &str| format!("wlan.0.station.{client}.{key}");
            let mut case = case.set(key("count"), 1);
            if let Some(rate) = rate {
                case = case.set(key("rate"), format!("{rate} Mbit/s"));
            } else if self.tcp != TESTBED.tcp {
                let (law, recovery, window) = self.tcp;
                case = case.set(key("tcp.law"), law).set(key("tcp.recovery"), recovery);
                case = case.set(key("tcp.max_window"), window);
            }
            if !kind.ends_with("contend") {
                return case;
            }
            if rate.is_some() && self.size != 1_500 {
                case = case.set(key("size"), format!("{} B", self.size));
            }
            match self.contends.parse::<f64>() {
                Ok(mbps) => case.set(station("rate"), format!("{mbps} Mbit/s")),
                Err(_) => ["A", "B", "C"].iter().fold(case, |case, client| {
                    case.set(format!("wlan.0.station.{client}.rate_control"), self.contends)
                }),
            }
        })
    }

    /// A tool in a case.
    pub(super) fn tool(self, id: usize, tool: Tool) -> Case {
        self.method(id, tool.method())
    }

    /// A method in a case.
    pub(super) fn method(self, id: usize, method: impl ToString) -> Case {
        self.loaded(id).set("measure.0.method", method)
    }

    /// The saturated flow in a case, for 10 s, or for a turn of the bad channel.
    pub(super) fn truth(self, id: usize) -> Case {
        let case = self.loaded(id).set("host.wbestserver.count", 0).set("traffic.saturating.count", 1);
        case.set("duration", if id == BAD { "25 s" } else { "15 s" })
    }
}

/// Pairs of figure 8, of a run of 90; and the cases.
pub(super) const PAIRS: [usize; 10] = [2, 5, 10, 15, 20, 30, 40, 50, 60, 75];
pub(super) const MOST_PAIRS: usize = 90;
/// Idle, crossing, contending, rate adaptation [figures 8 and 9].
pub(super) const TYPICAL: [(usize, &str); 4] =
    [(0, "idle"), (1, "crossing"), (2, "contending"), (BAD, "rate adaptation")];
/// Packets of a train in figure 9.
pub(super) const LENGTHS: [usize; 8] = [8, 10, 15, 20, 25, 30, 35, 39];

pub(super) fn pairs(id: usize) -> Case {
    TESTBED.method(id, format!("wbest(faithful=true,pairs={MOST_PAIRS})"))
}

pub(super) fn train(id: usize, length: usize) -> Case {
    TESTBED.method(id, format!("wbest(faithful=true,train_length={length})"))
}

/// The idle cell's capacity in packets of 1488 B, in Mbit/s, told to WBest.
pub(super) const IDLE: f64 = 29.2;

/// WBest that is told the idle cell's capacity.
pub(super) fn told(set_up: SetUp, id: usize, length: usize) -> Case {
    set_up.method(id, format!("wbest(faithful=true,capacity={IDLE} Mbit/s,train_length={length})"))
}

/// C_e of figures 4 and 5 in Mbit/s, and the shares of it that are left.
pub(super) const CAPACITY: f64 = 28.8;
pub(super) const LEFT: [f64; 3] = [0.25, 0.5, 0.75];
/// Errors of C_e, and of the rate of arrival.
pub(super) const FORCED: [f64; 11] = [-0.5, -0.4, -0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5];
pub(super) const ARRIVING: [f64; 10] = [-0.5, -0.4, -0.3, -0.2, -0.1, 0.0, 0.2, 0.4, 0.7, 1.0];

fn mbps(rate: f64) -> String {
    format!("{:.0} bit/s", 1e6 * rate)
}

fn beside_others(scenario: &'static str, left: f64) -> Case {
    Case::new(scenario).set("traffic.others.rate", mbps(CAPACITY * (1.0 - left)))
}

/// A forced error of the capacity.
pub(super) fn forced(left: f64, error: f64) -> Case {
    beside_others("errors", left).set("measure.0.capacity", mbps(CAPACITY * (1.0 + error)))
}

/// The same by Wi-Fi, beside the crossing traffic of case 1.
pub(super) fn forced_by_wifi(error: f64) -> Case {
    TESTBED.method(1, format!("wbest(faithful=true,capacity={})", mbps(IDLE * (1.0 + error))))
}

/// A train that comes to the last hop at that much more than its rate.
pub(super) fn arriving(left: f64, ratio: f64) -> Case {
    beside_others("compressed", left).set("link.2.rate", mbps(CAPACITY * (1.0 + ratio)))
}

/// Requested rates of figure 26, in Mbit/s.
pub(super) const PACED: [u32; 8] = [1, 5, 10, 15, 20, 25, 30, 35];

pub(super) fn paced(mbps: u32) -> Case {
    Case::new("pace").set("measure.0.capacity", format!("{mbps} Mbit/s"))
}

/// Pings of a size on the bad channel, or on a good one [figure 31].
pub(super) fn pings(bytes: u32, bad: bool) -> Case {
    let case = Case::new("ap-13")
        .set("host.wbestserver.count", 0)
        .set("duration", "45 s")
        .set(format!("traffic.ping-{bytes}.count"), 1)
        .set(format!("traffic.pong-{bytes}.count"), 1);
    if bad {
        return case;
    }
    case.set("wlan.0.station.A.trace.lines", "s,Mbit/s\n0,54\n1,54\n").set("wlan.0.station.A.frame_error", 0)
}
