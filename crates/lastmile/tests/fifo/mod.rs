//! A single-server FIFO with cross traffic, a sender that is descheduled and a receiver whose stamps jitter: the
//! noiseless model against which the estimators are measured. Not the simulator: thirty lines that can be checked
//! by eye.
#![allow(dead_code, reason = "each test binary uses its own part")]

use lastmile::estimate::{Estimator, Outcome, Refusal, Step, StreamPlan};
use lastmile::report::{Direction, Fate, PacketReport, StreamRecord};
use lastmile::time::{Span, Time};
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cross {
    Idle,
    Cbr,
    Poisson,
    /// Gaps of a Pareto distribution of shape 1.9.
    Pareto,
}

/// When a receiver takes interrupts; a packet is stamped at the first one after it came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Interrupts {
    /// At once.
    Each,
    /// Every so often, whatever comes.
    Ticks(f64),
    /// So long after the first packet that waits.
    HeldOff(f64),
    /// At once, but no sooner than so long after the last one.
    Throttled(f64),
}

/// Times in nanoseconds, sizes in bytes at the IP layer.
pub(crate) struct Path {
    pub(crate) capacity: f64,
    pub(crate) cross: Cross,
    pub(crate) cross_rate: f64,
    pub(crate) cross_size: f64,
    /// Between two sends that are due together.
    pub(crate) send_cost: f64,
    /// Mean time between the ends of a sender's holes, and their length; 0 for none.
    pub(crate) hole_every: f64,
    pub(crate) hole: f64,
    /// Receive stamps are late by up to so much, uniformly.
    pub(crate) jitter: f64,
    pub(crate) interrupts: Interrupts,
    next_interrupt: f64,
    /// Send times are late by up to so much, uniformly.
    pub(crate) lateness: f64,
    /// Packets lost after the queue, as a share.
    pub(crate) loss: f64,
    /// Packets that go another way behind the queue, as a share, and how much longer that is.
    pub(crate) detour: (f64, f64),
    /// Bytes that the queue holds.
    pub(crate) queue: f64,
    /// A token bucket between queue and link: bit/s and bytes, full at first.
    pub(crate) shaper: Option<(f64, f64)>,
    /// Bytes of tokens in it, and the time at which that was so, in nanoseconds.
    tokens: (f64, f64),
    /// A path that packets take behind this one; others do not.
    pub(crate) behind: Option<Box<Path>>,
    pub(crate) rx_offset: f64,
    pub(crate) rx_skew: f64,
    pub(crate) resolution: f64,
    pub(crate) direction: Direction,
    pub(crate) random: Pcg64Mcg,
    now: f64,
    next_cross: f64,
    free: f64,
    next_hole: f64,
    stream: u32,
    /// The spare rate over each stream's own window at the queue, in bit/s.
    pub(crate) truths: Vec<f64>,
    pub(crate) bytes: u64,
}

impl Path {
    pub(crate) fn new(capacity: f64, cross: Cross, cross_rate: f64, seed: u64) -> Path {
        let mut random = Pcg64Mcg::new(u128::from(seed) * 2 + 1);
        for _ in 0..8 {
            random.next_u64();
        }
        let mut path = Path {
            capacity,
            cross,
            cross_rate,
            cross_size: 1500.0,
            send_cost: 5_000.0,
            hole_every: 0.0,
            hole: 0.0,
            jitter: 0.0,
            interrupts: Interrupts::Each,
            next_interrupt: 0.0,
            lateness: 0.0,
            loss: 0.0,
            detour: (0.0, 0.0),
            queue: 1e12,
            shaper: None,
            tokens: (f64::INFINITY, 0.0),
            behind: None,
            rx_offset: 3e9,
            rx_skew: 0.0,
            resolution: 1.0,
            direction: Direction::Forward,
            random,
            now: 1e9,
            next_cross: f64::INFINITY,
            free: 0.0,
            next_hole: f64::INFINITY,
            stream: 0,
            truths: Vec::new(),
            bytes: 0,
        };
        if cross != Cross::Idle {
            // A random phase: periodic traffic starts anywhere in its period.
            path.next_cross = path.uniform() * path.period();
        }
        path
    }

    pub(crate) fn uniform(&mut self) -> f64 {
        f64::from(self.random.next_u32()) / (f64::from(u32::MAX) + 1.0)
    }

    fn period(&self) -> f64 {
        self.cross_size * 8e9 / self.cross_rate
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Serves a packet that came at `t`.
    fn serve(&mut self, t: f64, bytes: f64) {
        let mut start = self.free.max(t);
        if let Some((rate, bucket)) = self.shaper {
            let (tokens, at) = self.tokens;
            let level = |now: f64| (tokens + (now - at) * rate / 8e9).min(bucket);
            start += (bytes - level(start)).max(0.0) * 8e9 / rate;
            self.tokens = (level(start) - bytes, start);
        }
        self.free = start + bytes * 8e9 / self.capacity;
    }

    /// Sustained rate of the path, in bit/s.
    pub(crate) fn sustained(&self) -> f64 {
        self.shaper.map_or(self.capacity, |(rate, _)| rate.min(self.capacity))
    }

    /// The rate of bursts of `n` packets of `size` bytes that meet a full bucket.
    pub(crate) fn rate_of_bursts(&self, n: f64, size: f64) -> f64 {
        let link = (n - 1.0) * size * 8.0 / self.capacity;
        let tokens = self.shaper.map_or(0.0, |(rate, bucket)| (n * size - bucket) * 8.0 / rate);
        (n - 1.0) * size * 8.0 / link.max(tokens)
    }

    /// Serves the cross traffic that arrives until `t`; its bits.
    fn run_until(&mut self, t: f64) -> f64 {
        let mut bits = 0.0;
        while self.next_cross <= t {
            self.serve(self.next_cross, self.cross_size);
            bits += self.cross_size * 8.0;
            self.next_cross += match self.cross {
                Cross::Poisson => self.exponential(self.period()),
                Cross::Pareto => self.period() * 0.9 / 1.9 * libm::pow(1.0 - self.uniform(), -1.0 / 1.9),
                _ => self.period(),
            };
        }
        bits
    }

    /// When a packet that came at `t` leaves the last of all paths.
    fn pass(&mut self, t: f64, bytes: f64) -> f64 {
        self.run_until(t);
        self.serve(t, bytes);
        let left = self.free;
        self.behind.as_mut().map_or(left, |behind| behind.pass(left, bytes))
    }

    /// When a packet that came at `t` is stamped.
    fn interrupt(&mut self, t: f64) -> f64 {
        let at = match self.interrupts {
            Interrupts::Each => t,
            Interrupts::Ticks(every) => libm::ceil(t / every) * every,
            Interrupts::HeldOff(_) if t <= self.next_interrupt => self.next_interrupt,
            Interrupts::HeldOff(by) => t + by,
            Interrupts::Throttled(_) if t <= self.next_interrupt => self.next_interrupt,
            Interrupts::Throttled(least) if t <= self.next_interrupt + least => self.next_interrupt + least,
            Interrupts::Throttled(_) => t,
        };
        self.next_interrupt = at;
        at
    }

    fn departures(&mut self, plan: &StreamPlan) -> Vec<f64> {
        if self.hole > 0.0 {
            self.next_hole = self.now + self.exponential(self.hole_every);
        }
        let mut ready = 0.0_f64;
        let mut times = Vec::new();
        for packet in &plan.packets {
            let mut t =
                (self.now + packet.offset.as_nanos() as f64 + self.uniform() * self.lateness).max(ready);
            while self.hole > 0.0 && t >= self.next_hole {
                t = t.max(self.next_hole + self.hole);
                self.next_hole = self.next_hole + self.hole + self.exponential(self.hole_every);
            }
            ready = t + self.send_cost;
            times.push(t);
        }
        times
    }

    pub(crate) fn send(&mut self, plan: &StreamPlan) -> StreamRecord {
        let departures = self.departures(plan);
        let stamp = |t: f64, resolution: f64| (libm::round(t / resolution) * resolution) as u64;
        let mut packets = Vec::new();
        let mut cross_bits = 0.0;
        let mut last = 0.0_f64;
        for (k, (&t, packet)) in departures.iter().zip(&plan.packets).enumerate() {
            let bits = self.run_until(t);
            cross_bits += if k > 0 { bits } else { 0.0 };
            let backlog = (self.free - t).max(0.0) * self.capacity / 8e9;
            let dropped = backlog + packet.size.0 as f64 > self.queue;
            let fate = if dropped {
                Fate::Lost
            } else {
                let left = self.pass(t, packet.size.0 as f64);
                last = last.max(left);
                let late = self.uniform() * self.jitter;
                if self.uniform() < self.loss {
                    Fate::Lost
                } else {
                    let around = if self.detour.0 > 0.0 && self.uniform() < self.detour.0 {
                        self.detour.1
                    } else {
                        0.0
                    };
                    let stamped = self.interrupt(left) + late + around;
                    let at = stamped * (1.0 + self.rx_skew) + self.rx_offset;
                    Fate::Arrived(Time::from_nanos(stamp(at, self.resolution)))
                }
            };
            self.bytes += packet.size.0;
            let sent = Time::from_nanos(stamp(t, self.resolution));
            packets.push(PacketReport { seq: k as u64, size: packet.size, sent, fate, ecn: packet.ecn });
        }
        let window = departures.last().unwrap_or(&0.0) - departures.first().unwrap_or(&0.0);
        self.truths.push((self.sustained() - cross_bits * 1e9 / window).max(0.0));
        self.stream += 1;
        self.now = self.free.max(last).max(*departures.last().unwrap_or(&0.0)) + 10e6;
        self.run_until(self.now);
        StreamRecord {
            stream: self.stream - 1,
            direction: self.direction,
            pattern: plan.pattern,
            planned: plan.packets.iter().map(|p| p.offset).collect(),
            packets,
            tx_resolution: Span::from_nanos(self.resolution as i64),
            rx_resolution: Span::from_nanos(self.resolution as i64),
            clock_stepped: false,
        }
    }

    /// Runs a tool to its end. Gives up, as endpoints do, after ten minutes or 1,000 steps.
    pub(crate) fn measure(&mut self, tool: &mut dyn Estimator) -> Outcome {
        let limit = Span::from_secs(600);
        let mut left = limit;
        for _ in 0..1_000 {
            let step = tool.step();
            left = left
                - match &step {
                    Step::Send(plan) => plan.duration(),
                    Step::Pause(span) => *span,
                    Step::Done(_) => Span::ZERO,
                };
            if left < Span::ZERO {
                return Outcome::Refused(Refusal::TimeLimit { limit });
            }
            match step {
                Step::Send(plan) => {
                    let record = self.send(&plan);
                    tool.on_stream(&record);
                }
                Step::Pause(span) => {
                    self.now += span.as_nanos() as f64;
                    self.run_until(self.now);
                }
                Step::Done(outcome) => return outcome,
            }
        }
        panic!("the tool does not come to an end");
    }
}
