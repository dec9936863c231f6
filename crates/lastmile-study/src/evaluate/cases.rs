//! Scenarios whose tested streams have one controller after the other, or bulk TCP in their place.

use lastmile::classify::CLASSIFIERS;
use lastmile::control::{CONTROLLERS, Composition, Setting, WRAPPERS, build};
use lastmile::endpoint::stream::SenderRate;
use lastmile::node::Ecn;
use lastmile::options::{Choice, Entry, Registry, split_outside, used};
use lastmile::units::Rate;
use lastmile_sim::network::traffic::Arrivals;
use lastmile_sim::scenario::{Override, Scenario, TcpSpec, TrafficSpec};
use serde_json::{Value, json};

use super::guest::Guest;
use crate::error::{Error, Result};
use crate::scenarios;

/// The name under which streams are replaced by bulk TCP.
const TCP: &str = "tcp";
/// The controller that answers nothing: a stream that has it is not tested.
pub(super) const FIXED: &str = "fixed";

/// The controller of the tested streams, or TCP.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Contender {
    /// A registered controller, with what stands around it and the classifier in front.
    Controller(Composition),
    /// TCP with as much as goes, RFC 8869's yardstick (section 3.2.4).
    Tcp,
    /// One that is not registered.
    Guest(Guest),
}

impl Contender {
    /// The controller with all its options and those of what stands around it: two that are alike have the same.
    fn spelled_out(&self) -> Option<Composition> {
        let Contender::Controller(composition) = self else { return None };
        let mut all = composition.clone();
        let scheme = CONTROLLERS.find(&all.controller.name).ok();
        all.classifier = all.classifier.or_else(|| Some(Choice::named(scheme?.classifier?)));
        spell(&CONTROLLERS, &mut all.controller);
        all.wrapper.iter_mut().for_each(|wrapper| spell(&WRAPPERS, wrapper));
        all.classifier.iter_mut().for_each(|classifier| spell(&CLASSIFIERS, classifier));
        Some(all)
    }

    /// Its origin, which for a controller of others has the version, and its settings with all defaults.
    pub(super) fn source(&self) -> Value {
        let source = match self {
            Contender::Controller(own) => CONTROLLERS.find(&own.controller.name).map_or("", |own| own.paper),
            Contender::Tcp => "the simulator's TCP",
            Contender::Guest(_) => "a program over a pipe",
        };
        let settings = self.spelled_out().map_or_else(|| self.to_string(), |all| all.to_string());
        json!({ "controller": self.to_string(), "source": source, "settings": settings })
    }
}

/// Gives a choice the defaults of the options that it leaves out.
fn spell<E: Entry>(registry: &Registry<E>, choice: &mut Choice) {
    if let Ok(entry) = registry.find(&choice.name) {
        choice.options = used(entry.options(), &choice.options);
    }
}

impl core::fmt::Display for Contender {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Contender::Controller(composition) => composition.fmt(f),
            Contender::Tcp => f.write_str(TCP),
            Contender::Guest(guest) => f.write_str(&guest.name),
        }
    }
}

/// The contenders of a list with commas outside of parentheses, without a list all controllers that answer the network, and guests behind them.
pub(super) fn contenders(list: Option<&str>, guests: &[Guest]) -> Result<Vec<Contender>> {
    let mut contenders = registered(list)?;
    for guest in guests {
        if contenders.iter().any(|before| before.to_string() == guest.name) {
            return Err(Error::Input(format!("two contenders are called {}", guest.name)));
        }
        contenders.push(Contender::Guest(guest.clone()));
    }
    Ok(contenders)
}

fn registered(list: Option<&str>) -> Result<Vec<Contender>> {
    let usage = Error::Input;
    let all = || {
        let names = CONTROLLERS.iter().map(|scheme| scheme.name).filter(|name| *name != FIXED);
        names.collect::<Vec<_>>().join(",")
    };
    let list = list.map_or_else(all, str::to_owned);
    let mut contenders: Vec<Contender> = Vec::new();
    for (at, name) in split_outside(&list, ',').map(str::trim).enumerate() {
        let contender = match name {
            "" => return Err(usage(format!("--controllers {list:?}: name {} of the list is empty", at + 1))),
            TCP => Contender::Tcp,
            _ => Contender::Controller(
                name.parse().map_err(|error| usage(format!("--controllers {name}: {error}")))?,
            ),
        };
        if let Contender::Controller(composition) = &contender {
            CONTROLLERS
                .find(&composition.controller.name)
                .map_err(|error| usage(format!("--controllers {name}: {error}, {TCP}")))?;
            build(composition, &Setting::default())
                .map_err(|error| usage(format!("--controllers {name}: {error}")))?;
        }
        if let Some(before) = contenders.iter().find(|before| before.spelled_out() == contender.spelled_out())
        {
            let twice = match *before == contender {
                true => format!("{contender} twice"),
                false => format!("one controller twice: {before} and {contender} are the same"),
            };
            return Err(usage(format!("--controllers names {twice}")));
        }
        contenders.push(contender);
    }
    if contenders.is_empty() {
        return Err(usage(
            "--controllers names none: give one or more, such as tfrc,vtp,tfrc+zbs".to_owned(),
        ));
    }
    Ok(contenders)
}

/// True of a rate that a controller sets which answers the network.
pub(super) fn answers(rate: &SenderRate) -> bool {
    matches!(rate, SenderRate::Controlled(config) if config.control.controller.name != FIXED)
}

/// A scenario as it was asked for, and which of its streams are tested.
pub(super) struct Tested {
    pub(super) scenario: Scenario,
    file: String,
    text: String,
    overrides: Vec<Override>,
    /// Their tables, by their places in the file.
    tables: Vec<usize>,
    /// Their names in a run: those of all copies.
    pub(super) streams: Vec<String>,
}

impl Tested {
    /// Of that file or ready scenario: the streams of these names, or all whose rate a controller sets that answers the network.
    pub(super) fn load(name: &str, overrides: Vec<Override>, streams: &[String]) -> Result<Tested> {
        let (file, text) = scenarios::text(name)?;
        let scenario = Scenario::parse_with(&file, &text, &overrides)?;
        let usage = |text: String| Error::Input(format!("{file}: {text}"));
        let document: toml::Table =
            text.parse().map_err(|error: toml::de::Error| usage(error.to_string()))?;
        let tables = document.get("stream").and_then(toml::Value::as_array).map_or(&[][..], Vec::as_slice);
        let called = |at: usize, table: &toml::Value| {
            let name = table.get("name").and_then(toml::Value::as_str);
            name.map_or_else(|| format!("stream{at}"), str::to_owned)
        };
        let named: Vec<(usize, String)> =
            tables.iter().enumerate().map(|(at, table)| (at, called(at, table))).collect();
        if let Some(unknown) = streams.iter().find(|name| named.iter().all(|(_, known)| known != *name)) {
            let known: Vec<&str> = named.iter().map(|(_, name)| name.as_str()).collect();
            return Err(usage(format!(
                "no [[stream]] is called {unknown:?}; there are: {}",
                known.join(", ")
            )));
        }
        // A copy is called after its table.
        let copies = |name: &str| {
            let is = |stream: &str| {
                let copy = stream.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
                stream == name || copy.is_some_and(|number| number.parse::<u32>().is_ok())
            };
            scenario.roles.stream.iter().filter(|spec| is(&spec.name)).collect::<Vec<_>>()
        };
        let mut tested = (Vec::new(), Vec::new());
        for (at, name) in named {
            let own = copies(&name);
            let control = own.iter().find_map(|spec| match &spec.sender.rate {
                SenderRate::Controlled(config) => Some(config.control.controller.name.as_str()),
                SenderRate::Fixed(_) => None,
            });
            let asked = streams.contains(&name);
            if asked && control.is_none() {
                return Err(usage(format!("the rate of [[stream]] {name:?} is fixed: give it `control`")));
            }
            if asked || streams.is_empty() && control.is_some_and(|control| control != FIXED) {
                tested.0.push(at);
                tested.1.extend(own.iter().map(|spec| spec.name.clone()));
            }
        }
        let (tables, streams) = tested;
        if streams.is_empty() {
            return Err(usage(
                "nothing is tested: no [[stream]] has a `control` other than fixed".to_owned(),
            ));
        }
        Ok(Tested { scenario, file, text, overrides, tables, streams })
    }

    /// Inputs that decide the results of a run of one of its scenarios, but for the seed.
    pub(super) fn inputs<'a>(&'a self, scenario: &Scenario) -> impl core::fmt::Debug + 'a {
        (&self.text, &self.overrides, &self.streams, scenarios::traces(scenario))
    }

    /// The tested streams: name, sending and receiving host.
    pub(super) fn ends(&self) -> impl Iterator<Item = (&str, usize, usize)> {
        let own = self.scenario.roles.stream.iter().filter(|spec| self.streams.contains(&spec.name));
        own.map(|spec| (spec.name.as_str(), spec.from, spec.to))
    }

    /// Streams beside the tested ones whose own controllers answer the network.
    pub(super) fn others(&self) -> usize {
        let others = self.scenario.roles.stream.iter().filter(|spec| !self.streams.contains(&spec.name));
        others.filter(|spec| answers(&spec.sender.rate)).count()
    }

    /// True if packets of a tested stream leave with that codepoint.
    pub(super) fn sends(&self, ecn: Ecn) -> bool {
        let mut specs = self.scenario.roles.stream.iter();
        specs.any(|spec| spec.sender.ecn == ecn && self.streams.contains(&spec.name))
    }

    /// The scenario in which that contender has the tested streams.
    pub(super) fn with(&self, contender: &Contender) -> Result<Scenario> {
        match contender {
            Contender::Tcp => Ok(self.with_tcp()),
            Contender::Controller(composition) => self.with_control(&composition.to_string()),
            // Its place, which the run gives to the guest.
            Contender::Guest(_) => self.with_control(FIXED),
        }
    }

    fn with_control(&self, control: &str) -> Result<Scenario> {
        let own = self.tables.iter().map(|table| Override::new(format!("stream.{table}.control"), control));
        let overrides: Vec<Override> = self.overrides.iter().cloned().chain(own).collect();
        Ok(Scenario::parse_with(&self.file, &self.text, &overrides)?)
    }

    fn with_tcp(&self) -> Scenario {
        let mut scenario = self.scenario.clone();
        let (own, others): (Vec<_>, Vec<_>) =
            scenario.roles.stream.drain(..).partition(|spec| self.streams.contains(&spec.name));
        scenario.roles.stream = others;
        scenario.traffic.extend(own.into_iter().map(|spec| {
            let tcp = TcpSpec::default();
            TrafficSpec {
                size: tcp.config.segment + tcp.config.header,
                name: spec.name,
                arrivals: Arrivals::Cbr,
                from: spec.from,
                to: spec.to,
                rate: Rate::ip(0),
                start: spec.sender.start,
                start_within: spec.start_within,
                stop: spec.sender.stop,
                changes: Vec::new(),
                tcp: Some(tcp),
            }
        }));
        scenario
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: Option<&str>) -> Vec<String> {
        contenders(list, &[]).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_list_is_read_with_its_parentheses() {
        let list = "tfrc(preset=ns-2, header=0)+zbs, vtp ,fixed(rate=1 Mbit/s),tcp";
        assert_eq!(
            names(Some(list)),
            ["tfrc(header=0, preset=ns-2)+zbs", "vtp", "fixed(rate=1 Mbit/s)", "tcp"]
        );
        // Options that are another preset's are no defaults.
        assert_eq!(names(Some("tfrc,tfrc(preset=ns-2),tfrc(memory=0.5),vtp(hold=rounds)")).len(), 4);
        let all = names(None);
        assert!(all.len() >= 5 && all[0] == "lastmile" && !all.contains(&"fixed".to_owned()), "{all:?}");
    }

    #[test]
    fn a_source_has_all_settings() {
        let [tfrc, tcp] = [0, 1].map(|at| contenders(Some("tfrc(header=0),tcp"), &[]).unwrap()[at].source());
        let settings = tfrc["settings"].as_str().unwrap();
        assert!(settings.contains("header=0") && settings.contains("preset=rfc"), "{settings}");
        assert!(tfrc["source"].as_str().unwrap().contains("RFC 5348") && tcp["controller"] == "tcp");
    }

    #[test]
    fn a_list_that_cannot_be_is_refused() {
        for (list, said) in [
            ("tfrc,wishful", "--controllers wishful: there is no rate controller \"wishful\""),
            ("tfrc+wishful", "--controllers tfrc+wishful: there is no loss classifier"),
            ("tfrc,vtp,tfrc", "--controllers names tfrc twice"),
            (
                "vtp,vtp(hold=areas)",
                "--controllers names one controller twice: vtp and vtp(hold=areas) are the same",
            ),
            ("tcp,tcp", "--controllers names tcp twice"),
            (" ", "--controllers names none"),
            ("vtp,,tfrc", "--controllers \"vtp,,tfrc\": name 2 of the list is empty"),
            ("vtp,", "--controllers \"vtp,\": name 2 of the list is empty"),
            (
                "probe+vtp",
                "--controllers probe+vtp: probe+vtp is in another order than names compose in: vtp+probe",
            ),
        ] {
            let error = contenders(Some(list), &[]).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
        let error = contenders(Some("wishful"), &[]).unwrap_err().to_string();
        assert!(error.ends_with("nada, fixed, tcp"), "{error}");
    }

    #[test]
    fn streams_are_tested_whose_controller_answers() {
        let tested = Tested::load("rfc8867-5.2", Vec::new(), &[]).unwrap();
        assert_eq!(tested.streams, ["video-1", "video-2"]);
        let error =
            |streams: &[String]| Tested::load("rfc8867-5.2", Vec::new(), streams).err().unwrap().to_string();
        assert!(error(&["audio".to_owned()]).contains("no [[stream]] is called \"audio\"; there are: video"));
        let fixed = vec![Override::new("stream.video.control", "fixed")];
        let error = Tested::load("rfc8867-5.2", fixed.clone(), &[]).err().unwrap().to_string();
        assert!(error.contains("nothing is tested"), "{error}");
        // Named streams are tested, even fixed ones.
        let named = Tested::load("rfc8867-5.2", fixed, &["video".to_owned()]).unwrap();
        let vtp = named.with(&contenders(Some("vtp"), &[]).unwrap()[0]).unwrap();
        let control = |spec: &lastmile_sim::scenario::roles::stream::Spec| match &spec.sender.rate {
            SenderRate::Controlled(config) => config.control.to_string(),
            SenderRate::Fixed(_) => "-".to_owned(),
        };
        assert_eq!(vtp.roles.stream.iter().map(control).collect::<Vec<_>>(), ["vtp", "vtp"]);
        let tcp = named.with(&Contender::Tcp).unwrap();
        assert!(
            tcp.roles.stream.is_empty() && tcp.traffic.iter().filter(|flow| flow.tcp.is_some()).count() == 2
        );
    }
}
