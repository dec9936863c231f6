// Hosts a rate controller behind a loss classifier over a transport of one's own: `control vtp+spike`. The transport is a toy
// in virtual time: 2 Mbit/s, 20 ms each way, a queue of 150 ms, and a radio that loses one packet in fifty.
#![allow(missing_docs, clippy::print_stdout)] // a program
use lastmile::control::{self, Fate, Feedback, LostBy, RateController, Report, Sent, Setting};
use lastmile::{Bytes, Rate, Span, Time, pace::Pacer};
use std::collections::VecDeque;

pub(crate) const SIZE: Bytes = Bytes(1200); // of packets, at the IP layer

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or("vtp+spike".into()).parse()?;
    let mut controller = control::build(&name, &Setting { packet_size: SIZE, ..Setting::default() })?;
    println!("{:.0} kbit/s arrived, {:?}", host(&mut *controller, 60), controller.verdicts());
    Ok(())
}

/// Runs for so many seconds; gives the rate of arrivals, in kbit/s.
pub(crate) fn host(controller: &mut dyn RateController, seconds: i64) -> f64 {
    let (link, delay, queue) = (Rate::ip(2_000_000), Span::from_millis(20), Span::from_millis(150));
    let (mut pacer, mut free, mut id, mut came) = (Pacer::new(Span::ZERO), Time::ZERO, 0, 0_u64);
    let mut flight = VecDeque::new(); // packets that feedback is awaited of, and when they arrive, if ever
    for ms in 0..1_000 * seconds {
        let now = Time::ZERO + Span::from_millis(ms);
        // Packets leave at the pacing rate, and the controller is told of each when it really left.
        while pacer.ready(now, controller.output().pacing) <= now {
            pacer.release(now, SIZE, controller.output().pacing);
            let sent = Sent::media(id, SIZE, now);
            controller.on_sent(now, &sent);
            let fits = free.max(now) - now <= queue;
            free = if fits { free.max(now) + link.time_for(SIZE) } else { free };
            flight.push_back((sent, (fits && id % 50 != 7).then_some(free + delay)));
            id += 1;
        }
        // Every 50 ms the other side tells what arrived. Packets before the newest arrival that did not are lost.
        let written = now - delay;
        let newest = flight.iter().rposition(|(_, at)| at.is_some_and(|at: Time| at <= written));
        if let Some(newest) = newest.filter(|_| ms % 50 == 0) {
            let hold = written - flight[newest].1.unwrap_or(written);
            let clock = |at: Time| (at + Span::from_secs(7)).as_receiver(); // a clock of its own
            let fate = |at: Option<Time>| at.map_or(Fate::lost(LostBy::Gap), |at| Fate::arrived(clock(at)));
            let told = flight.drain(..=newest).map(|(sent, at)| Report { sent, fate: fate(at) });
            let mut reports: Vec<Report> = told.collect();
            came +=
                reports.iter().filter(|report| matches!(report.fate, Fate::Arrived { .. })).count() as u64;
            let feedback = Feedback::exact(&mut reports, Some(clock(written)));
            controller.on_feedback(now, &mut Feedback { hold, ..feedback });
        }
        // Timers come after all feedback that waits.
        if controller.poll_timeout().is_some_and(|at| at <= now) {
            controller.on_timeout(now);
        }
        while controller.poll_action().is_some() {} // nothing that it may ask for is possible here
        while controller.poll_decision().is_some() {} // for logs
    }
    came as f64 * SIZE.bits() as f64 / 1e3 / seconds as f64
}
