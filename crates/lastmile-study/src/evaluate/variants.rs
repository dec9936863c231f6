//! Variants of a path (RFC 8868, section 4): another queue discipline, losses, and jitter.

use lastmile::node::Ecn;
use lastmile::options::Given;
use lastmile::rng::Stream;
use lastmile::time::{Span, Time};
use lastmile_sim::network::link::Change;
use lastmile_sim::network::loss::{Bernoulli, Loss};
use lastmile_sim::network::queue::Discipline;
use lastmile_sim::scenario::Scenario;

use super::cases::Tested;
use super::path::{Flow, Limit, Paths};
use crate::error::{Error, Result};

/// Of RFC 8868's recommended jitter, section 4.5.3.
const STD: Span = Span::from_millis(5);
const N_STD: f64 = 3.0;
/// Packets that leave within so long have the same: closer together than most are.
const SLOT: Span = Span::from_millis(5);

/// Departures from the scenario.
#[derive(Clone, Debug, Default)]
pub(super) struct Variants {
    /// At the links that limit tested streams, instead of drop-tail.
    pub(super) queue: Option<Discipline>,
    /// The share of packets that those links lose, each for itself, after their transmitters.
    pub(super) loss: Option<f64>,
    /// On the first link of every flow's way, there and back.
    pub(super) jitter: bool,
}

impl Variants {
    /// By a discipline's name, and a share of losses.
    ///
    /// # Errors
    /// There is no such discipline, or it needs parameters; the share is none.
    pub(super) fn new(queue: Option<&str>, loss: Option<f64>, jitter: bool) -> Result<Variants> {
        let usage = Error::Input;
        let discipline = |kind: &str| {
            let read = Discipline::read(kind, &Given::new());
            read.map_err(|error| usage(format!("--queue: {error}")))
        };
        if let Some(wrong) = loss.filter(|share| !(0.0..=1.0).contains(share)) {
            return Err(usage(format!("--loss: a share, 0 to 1, not {wrong}")));
        }
        Ok(Variants { queue: queue.map(discipline).transpose()?, loss, jitter })
    }

    /// In words.
    pub(super) fn names(&self) -> Vec<String> {
        let queue = self.queue.as_ref().map(Discipline::kind);
        let loss = self.loss.map(|share| format!("{} % lost at random", 100.0 * share));
        [queue, loss, self.jitter.then(|| "jitter".to_owned())].into_iter().flatten().collect()
    }

    /// Refuses what would change nothing for a tested stream of this scenario: jitter where its way has no link that jitter is of, and the
    /// queue `step`, which marks ECT(1) alone and drops nothing.
    pub(super) fn check(&self, name: &str, of: &Tested) -> Result<()> {
        if matches!(self.queue, Some(Discipline::Step(_))) && !of.sends(Ecn::Ect1) {
            let why = "marks packets with ECT(1) alone and drops none early, and no tested stream sends them: give one `ecn = \"ect1\"`";
            return Err(Error::Input(format!("{name}: --queue step {why}")));
        }
        let airborne = of.ends().find(|&(_, from, to)| first_link(&of.scenario, from, to).is_none());
        if let Some((stream, ..)) = airborne.filter(|_| self.jitter) {
            let why = format!("is that of a [[link]], and there is none on the way of {stream:?}");
            return Err(Error::Input(format!("{name}: --jitter {why}, only a WLAN")));
        }
        Ok(())
    }

    /// True if they change anything about a scenario, or are not meant to.
    pub(super) fn reach(&self, of: &Tested) -> bool {
        self.queue.is_none() && self.loss.is_none() || !limits(&of.scenario, &of.streams).is_empty()
    }

    /// Queue and losses, at the links that limit these streams.
    pub(super) fn apply(&self, scenario: &mut Scenario, tested: &[String]) {
        if self.queue.is_none() && self.loss.is_none() {
            return;
        }
        for link in limits(scenario, tested) {
            let link = &mut scenario.links[link];
            if let Some(queue) = &self.queue {
                link.config.discipline = queue.clone();
            }
            if let Some(rate) = self.loss {
                let loss = Loss { name: "evaluated".to_owned(), ..Loss::of(Bernoulli { rate }) };
                link.config.losses.push(loss);
                link.loss_flows.push(Vec::new());
            }
        }
    }

    /// Jitter as it is in a run with that seed: delays |N(0, 5 ms)|, cut at three deviations. Links keep the order of packets, so that it is
    /// NR-BPDV (RFC 8868, section 4.5.2), which flows of the test and beside it alike have.
    pub(super) fn jitter(&self, scenario: &mut Scenario, seed: u64) {
        if !self.jitter {
            return;
        }
        let flows = scenario.traffic.iter().map(|flow| (flow.from, flow.to));
        let talks = scenario.conversations().into_iter().map(|talk| (talk.from.0, talk.to.0));
        let ends: Vec<(usize, usize)> = flows.chain(talks).collect();
        let mut first: Vec<usize> = ends
            .into_iter()
            .flat_map(|(from, to)| [(from, to), (to, from)])
            .filter_map(|(from, to)| first_link(scenario, from, to))
            .collect();
        first.sort_unstable();
        first.dedup();
        for link in first {
            let name = |vertex| scenario.vertex_name(vertex).to_owned();
            let name =
                format!("jitter/{}>{}", name(scenario.links[link].from), name(scenario.links[link].to));
            let mut random = Stream::new(seed, &name);
            let config = &mut scenario.links[link].config;
            let mut planned =
                config.schedule.iter().filter_map(|change| Some((change.at, change.delay?))).peekable();
            let (mut delay, mut jitter) = (config.delay, Vec::new());
            let mut at = Time::ZERO;
            while at < Time::ZERO + scenario.duration {
                while let Some((_, next)) = planned.next_if(|planned| planned.0 <= at) {
                    delay = next;
                }
                let more = STD.scaled(random.gaussian().abs().min(N_STD));
                jitter.push(Change { at, rate: None, delay: Some(delay + more) });
                at += SLOT;
            }
            drop(planned);
            for change in &mut config.schedule {
                change.delay = None;
            }
            config.schedule.extend(jitter);
        }
    }
}

/// The first link from a host to another that is no WLAN's.
fn first_link(scenario: &Scenario, from: usize, to: usize) -> Option<usize> {
    scenario.path(from, to)?.into_iter().find(|&link| link < scenario.links.len())
}

/// The links that limit these streams.
fn limits(scenario: &Scenario, tested: &[String]) -> Vec<usize> {
    let link = |flow: &Flow| if let Limit::Link(link) = flow.limit { Some(link) } else { None };
    let mut links: Vec<usize> =
        Paths::new(scenario, tested, scenario.seed).tested.iter().filter_map(link).collect();
    links.sort_unstable();
    links.dedup();
    links
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios;
    use lastmile_sim::scenario::Override;

    #[test]
    fn jitter_is_the_rfc_s_and_the_same_at_one_seed() {
        let variants = Variants { jitter: true, ..Variants::default() };
        let plain = scenarios::load("rfc8867-5.1", &[]).unwrap();
        let of = |seed: u64| {
            let mut scenario = plain.clone();
            variants.jitter(&mut scenario, seed);
            scenario
        };
        let (one, two) = (of(1), of(2));
        assert!(one == of(1) && one != two);
        let access = one.link("s", "a").unwrap();
        let delays: Vec<f64> = one.links[access]
            .config
            .schedule
            .iter()
            .filter_map(|change| Some(change.delay?.as_secs_f64() * 1e3))
            .collect();
        assert_eq!(delays.len(), 20_000, "one for each 5 ms of 100 s");
        // The mean of |N(0, 1)| is sqrt(2 / pi), cut at 3 it is next to the same.
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        assert!((mean - 5.0 * (2.0 / core::f64::consts::PI).sqrt()).abs() < 0.1, "{mean}");
        let most = delays.iter().copied().fold(0.0, f64::max);
        assert!((14.9..=15.0).contains(&most), "{most}");
        // The bottleneck stays as it is.
        let link = one.link("a", "b").unwrap();
        assert_eq!(one.links[link], plain.links[link]);
    }

    #[test]
    fn queues_and_losses_are_at_what_limits() {
        let variants = Variants::new(Some("pie"), Some(0.01), false).unwrap();
        let plain = scenarios::load("rfc8867-5.3", &[]).unwrap();
        let mut scenario = plain.clone();
        variants.apply(&mut scenario, &["forward".to_owned(), "backward".to_owned()]);
        for (at, link) in scenario.links.iter().enumerate() {
            let limits = link.config.rate.is_some();
            assert_eq!(matches!(link.config.discipline, Discipline::Pie(_)), limits, "{link:?}");
            assert_eq!(link.config.losses.len(), usize::from(limits));
            assert!(limits || *link == plain.links[at]);
        }
    }

    #[test]
    fn variants_that_cannot_be_are_refused() {
        let said = |queue, loss| Variants::new(queue, loss, false).unwrap_err().to_string();
        assert!(said(Some("fastest"), None).contains("no discipline \"fastest\"; known: drop-tail"));
        assert!(said(None, Some(1.5)).contains("0 to 1, not 1.5"));
        let step = Variants::new(Some("step"), None, false).unwrap();
        let of = |set: Vec<Override>| Tested::load("rfc8867-5.1", set, &[]).unwrap();
        let error = step.check("rfc8867-5.1", &of(Vec::new())).unwrap_err().to_string();
        assert!(error.starts_with("rfc8867-5.1: --queue step marks packets with ECT(1) alone"), "{error}");
        step.check("rfc8867-5.1", &of(vec![Override::new("stream.0.ecn", "ect1")])).unwrap();
        let jitter = Variants { jitter: true, ..Variants::default() };
        for name in crate::scenarios::RMCAT {
            jitter.check(name, &Tested::load(name, Vec::new(), &[]).unwrap()).unwrap();
        }
    }
}
