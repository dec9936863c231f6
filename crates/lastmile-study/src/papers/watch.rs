//! Observation of a run: rates, queues and windows in steps of time, and the delays of streams' packets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use lastmile::time::{Span, Time};
use lastmile_sim::monitor::series::{SeriesPlan, SeriesRow};
use lastmile_sim::runs::Hooks;
use lastmile_sim::scenario::{Scenario, Simulation};

use crate::media;

/// Observation of a paper's runs.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// Length of a step.
    pub step: Span,
    /// True if each packet of a stream is noted.
    pub packets: bool,
}

/// Notes of a run.
#[derive(Debug, Default)]
pub struct Seen {
    /// Of flows, links and WLANs, step by step.
    pub rows: Vec<SeriesRow>,
    /// Packets of streams that arrived, by the stream's name: when, and after how long, in seconds.
    pub arrivals: BTreeMap<String, Vec<(f64, f64)>>,
}

/// Shared by those who look on.
pub(crate) type Notes = Arc<Mutex<Seen>>;

impl Watch {
    /// Notes it while a run goes.
    pub(crate) fn hooks(self, notes: &Notes) -> Hooks {
        let (rows, packets) = (Arc::clone(notes), Arc::clone(notes));
        let tell = move |row: &SeriesRow| noted(&rows, |seen| seen.rows.push(row.clone()));
        let prepare = move |scenario: &Scenario, simulation: &mut Simulation| {
            if self.packets {
                let notes = Arc::clone(&packets);
                media::watch(
                    scenario,
                    simulation,
                    |name| Some(name.to_owned()),
                    move |name, left, now| {
                        let arrival = ((now - Time::ZERO).as_secs_f64(), (now - left).as_secs_f64());
                        noted(&notes, |seen| seen.arrivals.entry(name.clone()).or_default().push(arrival));
                    },
                );
            }
        };
        Hooks {
            series: Some(SeriesPlan { step: self.step, tell: Box::new(tell) }),
            prepare: Some(Box::new(prepare)),
            ..Hooks::default()
        }
    }
}

fn noted(notes: &Notes, what: impl FnOnce(&mut Seen)) {
    what(&mut notes.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Notes of a run that is over.
pub(crate) fn taken(notes: &Notes) -> Seen {
    let mut taken = Seen::default();
    noted(notes, |seen| std::mem::swap(seen, &mut taken));
    taken
}

impl Seen {
    /// The rows of one flow, link (`from>to`) or direction of a WLAN, in the order of time.
    pub fn of<'a>(&'a self, row: &'a str, name: &'a str) -> impl Iterator<Item = &'a SeriesRow> {
        self.rows.iter().filter(move |seen| seen.row == row && seen.name == name)
    }
}
