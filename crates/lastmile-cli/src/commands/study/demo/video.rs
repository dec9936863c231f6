//! Real video over the demo's cell, under one controller after the other, with a line each other second, and its part of the page.

use std::sync::mpsc::channel;

use anyhow::anyhow;
use lastmile::time::Span;
use lastmile_net::lab::lateness::LabLateness;
use lastmile_net::sched;
use lastmile_report::html::{esc, plots};
use lastmile_report::rows;
use lastmile_sim::roles::Makers;
use lastmile_sim::runs::Hooks;
use lastmile_sim::scenario::Scenario;

use super::{CONTROLLERS, Demo, LabFailure, VIDEO_TRIES, cell, in_lab, in_simulator};
use crate::roles::film::{self, Filmed, Filming, Moment, Second};
use crate::shell::options::KERNEL_NOISE;
use crate::shell::{say, say_in_lines};

/// Moments of the cell that charts mark: seconds of the run, and names.
const MOMENTS: &[Moment] =
    &[(8.0, 14.0, "something between phone and access point"), (19.0, 19.0, "hand-off")];
/// Seconds between lines.
const LINES: usize = 2;

/// A video that has run.
struct Take {
    filmed: Filmed,
    /// Of a run in the lab.
    lateness: Option<LabLateness>,
}

impl Demo {
    /// Sends the video, and gives the page's section.
    pub(super) fn video(&mut self, seconds: f64) -> anyhow::Result<String> {
        say_in_lines(
            "Video to the phone: a test pattern of 640x480 at 30 frames/s in H.264, decoded and compared with its source. From 8 to 14 s something \
             comes between phone and access point for 25 ms at a time; at 19 s the phone goes over to another access point.",
        );
        let mut takes: Vec<Take> = Vec::new();
        for control in CONTROLLERS {
            let scenario = cell(control, seconds)?;
            let before = takes.first().map(|take| &take.filmed);
            say(&match before {
                None => format!("Under {control}, in the second before each line (ms: delay to the screen):"),
                Some(before) => {
                    format!("Under {control}; behind the bar {} then: Mbit/s, frames/s, SSIM:", before.name)
                }
            });
            let seed = self.seed;
            let take = match self.where_possible(|_| in_real_time(&scenario, seed, control, before))? {
                Some(take) => take,
                None => simulated(&scenario, seed, control, before)?,
            };
            take.lateness.iter().for_each(|lateness| {
                self.is_on_time(lateness);
            });
            takes.push(take);
        }
        say("");
        takes.iter().for_each(|take| say_in_lines(&take.sentence()));
        say_in_lines(ONE_RUN);
        Ok(section(&takes))
    }
}

const ONE_RUN: &str =
    "One run each (n = 1), over the same losses in time; other seeds (--seed) give other numbers.";

impl Take {
    fn sentence(&self) -> String {
        let seen = self.filmed.seen.lock();
        let late = self.lateness.as_ref().and_then(|lateness| lateness.refused.as_ref());
        let doubts: Vec<String> = late
            .map(ToString::to_string)
            .into_iter()
            .chain(self.lateness.as_ref().and_then(|_| self.filmed.too_slow()))
            .collect();
        let trust = match doubts.is_empty() {
            true => String::new(),
            false => format!(" These numbers cannot be trusted: {}.", doubts.join("; ")),
        };
        format!("Under {} the video {}.{trust}", self.filmed.name, self.filmed.film(&seen).sentence())
    }
}

/// A line about a second, with the same second of the video before.
fn line(second: &Second, before: &[Second]) -> String {
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
    };
    let same = before.iter().find(|other| (other.at - second.at).abs() < 0.5);
    let same =
        same.map(|same| format!("  | {:.2}  {:2.0}  {}", same.received, same.frames, number(same.ssim, 3)));
    format!(
        "{:3.0} s  {:.2} Mbit/s  {:2.0} frames/s  SSIM {:5}  {:>4} ms  {:2} lost{}",
        second.at,
        second.received,
        second.frames,
        number(second.ssim, 3),
        number(second.delay.map(|delay| delay * 1e3), 0),
        second.lost,
        same.unwrap_or_default()
    )
}

/// Begins a run: the thread that collects its news, its endpoints and its observers.
fn begin(
    (control, seed): (&str, u64),
    in_real_time: bool,
    before: Option<&Filmed>,
) -> (std::thread::JoinHandle<Filmed>, Makers, Hooks) {
    let (filming, (news, told)) = (Filming::default(), channel());
    let noise = if in_real_time { KERNEL_NOISE } else { Span::ZERO };
    let make = filming.makers(Makers::registered(noise, seed), in_real_time, before);
    let prepare = Some(filming.prepare(news));
    let (name, before) = (control.to_owned(), before.map_or(Vec::new(), |before| before.seconds.clone()));
    let collected = std::thread::spawn(move || {
        let mut seconds = 0;
        filming.collect(&name, &told, |second| {
            seconds += 1;
            if seconds % LINES == 0 {
                say(&line(second, &before));
            }
        })
    });
    (collected, make, Hooks { prepare, ..Hooks::default() })
}

fn ended(collected: std::thread::JoinHandle<Filmed>) -> anyhow::Result<Filmed> {
    collected.join().map_err(|_| anyhow!("a thread of the demo panicked; this is a defect of lastmile"))
}

fn in_real_time(
    scenario: &Scenario,
    seed: u64,
    control: &str,
    before: Option<&Filmed>,
) -> Result<Take, LabFailure> {
    let begin = || Ok(begin((control, seed), true, before));
    let (collected, run) = in_lab((scenario, seed), (VIDEO_TRIES, sched::may_be_realtime()), begin)?;
    // Nothing was measured in it.
    let mut lateness = run.lateness;
    lateness.moved = None;
    Ok(Take { filmed: ended(collected)?, lateness: Some(lateness) })
}

fn simulated(scenario: &Scenario, seed: u64, control: &str, before: Option<&Filmed>) -> anyhow::Result<Take> {
    let (collected, make, hooks) = begin((control, seed), false, before);
    // Its engine is dropped and tells no more; its viewer compares to the end.
    in_simulator(scenario, seed, &make, hooks)?;
    Ok(Take { filmed: ended(collected)?, lateness: None })
}

/// The page's section.
fn section(takes: &[Take]) -> String {
    let world = match takes.iter().all(|take| take.lateness.is_some()) {
        true => "Real packets in real time, between network namespaces on this machine",
        false => {
            "In the simulator, since there can be no lab here: the same endpoints and the same codec, in virtual time"
        }
    };
    let words: String = takes.iter().map(|take| format!("<p>{}</p>\n", esc(&take.sentence()))).collect();
    let late: String = takes
        .iter()
        .filter_map(|take| Some((&take.filmed.name, take.lateness.as_ref()?)))
        .map(|(name, lateness)| {
            let words = crate::commands::study::lab::lateness_in_words(lateness);
            format!("<p class=\"soft\">{}</p>\n", esc(&format!("{name}: {words}")))
        })
        .collect();
    let rows: Vec<_> = takes.iter().map(|take| take.filmed.row()).collect();
    let table = rows::table(&rows.iter().collect::<Vec<_>>(), &Filmed::COLUMNS);
    let filmed: Vec<&Filmed> = takes.iter().map(|take| &take.filmed).collect();
    let charts = film::charts_beside(&filmed, MOMENTS);
    // The second video looked at its screen where the first was at its worst.
    let seen: Vec<_> = filmed.iter().map(|filmed| filmed.seen.lock()).collect();
    let films: Vec<_> = filmed.iter().zip(&seen).map(|(filmed, seen)| filmed.film(seen)).collect();
    let stills: String =
        (0..films.len()).map(|place| plots(&films[place].stills(films.get(place + 1)))).collect();
    let then = match &filmed[..] {
        [first, second] => format!("; at that of {} the screen under {} too", first.name, second.name),
        _ => String::new(),
    };
    format!(
        "<h2>Video over 802.11g, through a burst of losses and a hand-off</h2>\n{words}<p class=\"soft\">{world}. {ONE_RUN}</p>\n{late}\
         {table}<article class=\"card\"><div class=\"plots\">\n{}</div></article>\n<h3>The worst second of each, and the source{then}</h3>\n{stills}",
        charts.concat()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three seconds of both in the simulator.
    #[test]
    fn videos_stand_beside_each_other_with_a_still_of_each() {
        let take = |control: &str, before: Option<&Filmed>| {
            simulated(&cell(control, 3.0).unwrap(), 1, control, before).unwrap()
        };
        let first = take("tfrc", None);
        let second = take("lastmile", Some(&first.filmed));
        let said = line(&second.filmed.seconds[1], &first.filmed.seconds);
        assert!(said.contains("frames/s  SSIM 0.9") && said.contains(" lost  | "), "{said}");
        assert!(said.chars().count() <= 80, "{said}");
        // The same again gives the same numbers.
        let again = take("lastmile", Some(&first.filmed));
        assert_eq!(again.sentence(), second.sentence());
        assert_eq!(again.filmed.seen.lock().psnr(), second.filmed.seen.lock().psnr());
        let page = section(&[first, second]);
        assert_eq!(page.matches("data:image/png;base64,").count(), 5);
        assert!(page.contains("In the simulator") && page.contains("never froze"), "{}", &page[..1_000]);
    }
}
