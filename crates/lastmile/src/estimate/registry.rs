//! The registered methods: what `lastmile methods` prints, and how a name becomes an [`Estimator`].

use crate::classify::{self, UnknownClassifier};
use crate::estimate::capprobe::{CapProbe, CapProbeConfig};
use crate::estimate::wbest::{Wbest, WbestConfig};
use crate::estimate::{COALESCING, Estimator, Quantity};
use crate::time::Span;
use crate::units::{Bytes, Rate};

/// What a caller may ask of a method. What it has no use for is an error, lest somebody believes that it counted.
///
/// ```
/// use lastmile::estimate::{MethodConfig, build};
/// let config = MethodConfig { trains: Some(4), ..MethodConfig::default() };
/// assert!(build("wbest", &config).is_ok());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MethodConfig {
    /// Trains to average, where one is not enough.
    pub trains: Option<usize>,
    /// Packets in a train, where the method's own number is not wanted.
    pub train: Option<usize>,
    /// Pairs, likewise.
    pub pairs: Option<usize>,
    /// Size of the packets at the IP layer, likewise.
    pub packet_size: Option<Bytes>,
    /// Rather under-estimate.
    pub conservative: bool,
    /// The original program's quirks.
    pub faithful: bool,
    /// The loss classifier's name.
    pub classifier: Option<String>,
    /// The capacity at the IP layer, where it is known.
    pub capacity: Option<Rate>,
    /// Uncertainty of the hosts' stamps beyond their resolution: two microseconds for kernels, nothing for exact
    /// simulated stamps.
    pub timing_noise: Span,
    /// By how much a receiver that coalesces interrupts may stamp late; nothing for simulated hosts, which never do.
    pub coalescing: Span,
    /// Seeds what a method draws at random.
    pub seed: u64,
}

impl Default for MethodConfig {
    fn default() -> MethodConfig {
        MethodConfig {
            trains: None,
            train: None,
            pairs: None,
            packet_size: None,
            conservative: false,
            faithful: false,
            classifier: None,
            capacity: None,
            timing_noise: Span::from_micros(2),
            coalescing: COALESCING,
            seed: 0,
        }
    }
}

/// A registered method.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Where it comes from.
    pub paper: &'static str,
    /// What it estimates, in the order of its results.
    pub estimates: &'static [Quantity],
    /// Whether it also works on replies to each packet, so that any plain STAMP reflector serves it.
    pub round_trip: bool,
    /// Up to which rate at 1488 B it gives numbers, by the resolution of stamps; beyond it answers "more than".
    pub resolution: &'static str,
    /// Makes one.
    pub build: fn(&MethodConfig) -> Result<Box<dyn Estimator>, MethodError>,
}

/// A method that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MethodError {
    /// There is no such method.
    #[error("there is no method {name:?}; known: {}", METHODS.iter().map(|m| m.name).collect::<Vec<_>>().join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// There is no such classifier.
    #[error(transparent)]
    Classifier(#[from] UnknownClassifier),
    /// A parameter that makes no sense.
    #[error("{0}")]
    Parameter(String),
}

/// All methods, in the order in which they are listed.
///
/// ```
/// let names: Vec<&str> = lastmile::estimate::METHODS.iter().map(|m| m.name).collect();
/// assert_eq!(names, ["wbest", "capprobe"]);
/// ```
pub const METHODS: &[Method] = &[
    Method {
        name: "wbest",
        about: "capacity from 30 packet pairs, then what is left of it from one train at that rate",
        paper: "Li, Claypool, Kinicki, WBest, LCN 2008",
        estimates: &[Quantity::Capacity, Quantity::AvailableBandwidth],
        round_trip: true,
        resolution: "1 us: 600 Mbit/s with the 2 us that kernels add; 250 us: 4.7 Mbit/s",
        build: wbest,
    },
    Method {
        name: "capprobe",
        about: "capacity from the packet pair with the least delay: the one that met no other traffic",
        paper: "Kapoor, Chen, Lao, Gerla, Sanadidi, CapProbe, SIGCOMM 2004",
        estimates: &[Quantity::Capacity],
        round_trip: true,
        resolution: "1 us: 600 Mbit/s with the 2 us that kernels add; 250 us: 4.7 Mbit/s",
        build: capprobe,
    },
];

/// Makes the method of that name.
///
/// ```
/// use lastmile::estimate::{MethodConfig, build};
/// let error = build("dowsing", &MethodConfig::default()).err().unwrap();
/// assert_eq!(error.to_string(), "there is no method \"dowsing\"; known: wbest, capprobe");
/// ```
pub fn build(name: &str, config: &MethodConfig) -> Result<Box<dyn Estimator>, MethodError> {
    let method = METHODS.iter().find(|m| m.name == name);
    let method = method.ok_or_else(|| MethodError::Unknown { name: name.to_owned() })?;
    (method.build)(config)
}

/// What no packet of a probing stream can be.
fn check_size(config: &MethodConfig) -> Result<(), MethodError> {
    match config.packet_size {
        Some(size) if !(100..=65_535).contains(&size.0) => Err(MethodError::Parameter(format!(
            "probes of {size} are not possible: 100 B to 65535 B at the IP layer"
        ))),
        _ => Ok(()),
    }
}

/// The first of those options that was asked for, as an error.
fn unused(options: &[(bool, &str, &str)]) -> Result<(), MethodError> {
    match options.iter().find(|(asked, ..)| *asked) {
        Some((_, option, why)) => Err(MethodError::Parameter(format!("{option} {why}: leave it out"))),
        None => Ok(()),
    }
}

fn wbest(config: &MethodConfig) -> Result<Box<dyn Estimator>, MethodError> {
    check_size(config)?;
    let given = config.capacity.is_some();
    unused(&[
        (
            given && config.pairs.is_some(),
            "--pairs",
            "means nothing beside --capacity, with which none are sent",
        ),
        (
            given && config.conservative,
            "--conservative",
            "means nothing beside --capacity, which is used as it is",
        ),
        (
            config.faithful && config.conservative,
            "--conservative",
            "is not in the original program, and --faithful is that",
        ),
    ])?;
    if config.capacity.is_some_and(|c| c.bits_per_second() == 0) {
        return Err(MethodError::Parameter("a capacity of 0 bit/s leaves nothing to measure".into()));
    }
    let default = WbestConfig::default();
    let within = |what: &str, n: usize, least: usize| {
        let error = || MethodError::Parameter(format!("{what} must be {least} to 1000, not {n}"));
        (least..=1_000).contains(&n).then_some(n).ok_or_else(error)
    };
    let wbest = WbestConfig {
        trains: within("trains", config.trains.unwrap_or(1), 1)?,
        train: within("packets in a train", config.train.unwrap_or(default.train), 8)?,
        pairs: within("pairs", config.pairs.unwrap_or(default.pairs), 5)?,
        packet_size: config.packet_size.unwrap_or(default.packet_size),
        conservative: config.conservative,
        faithful: config.faithful,
        capacity: config.capacity.filter(|c| c.bits_per_second() > 0),
        timing_noise: config.timing_noise,
        coalescing: config.coalescing,
        seed: config.seed,
        ..default
    };
    let classifier = config.classifier.as_deref().map(classify::build).transpose()?;
    Ok(Box::new(Wbest::new(wbest, classifier)))
}

fn capprobe(config: &MethodConfig) -> Result<Box<dyn Estimator>, MethodError> {
    check_size(config)?;
    let trainless = "means nothing to capprobe, which sends no trains";
    unused(&[
        (config.trains.is_some(), "--trains", trainless),
        (config.train.is_some(), "--train-length", trainless),
        (config.pairs.is_some(), "--pairs", "means nothing to capprobe, which sends pairs until they agree"),
        (config.conservative, "--conservative", "means nothing to capprobe, which has no deciles"),
        (
            config.classifier.is_some(),
            "--classifier",
            "means nothing to capprobe, which leaves lost pairs out",
        ),
        (config.capacity.is_some(), "--capacity", "means nothing to capprobe, which measures it"),
    ])?;
    let default = if config.faithful { CapProbeConfig::faithful() } else { CapProbeConfig::default() };
    let [larger, smaller] = default.sizes;
    let sizes = config
        .packet_size
        .map_or(default.sizes, |size| [size, Bytes((size.0 * smaller.0 / larger.0).max(80))]);
    Ok(Box::new(CapProbe::new(CapProbeConfig {
        sizes,
        timing_noise: config.timing_noise,
        coalescing: config.coalescing,
        seed: config.seed,
        ..default
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_made_by_its_name() {
        for method in METHODS {
            assert!(build(method.name, &MethodConfig::default()).is_ok(), "{}", method.name);
        }
    }

    #[test]
    fn nonsense_is_refused_in_words() {
        let refused = |config: MethodConfig| build("wbest", &config).err().unwrap().to_string();
        assert!(refused(MethodConfig { trains: Some(0), ..Default::default() }).contains("trains must be 1"));
        assert!(
            refused(MethodConfig { packet_size: Some(Bytes(20)), ..Default::default() }).contains("20 B")
        );
        let config = MethodConfig { classifier: Some("oracle".into()), ..Default::default() };
        assert!(refused(config).contains("known: spike"));
    }

    #[test]
    fn what_would_be_ignored_is_refused() {
        let refused = |name, config| build(name, &config).err().map(|e| e.to_string()).unwrap_or_default();
        let base = MethodConfig::default;
        let capprobe = [
            ("--trains", MethodConfig { trains: Some(4), ..base() }),
            ("--trains", MethodConfig { trains: Some(1), ..base() }),
            ("--train-length", MethodConfig { train: Some(30), ..base() }),
            ("--pairs", MethodConfig { pairs: Some(30), ..base() }),
            ("--conservative", MethodConfig { conservative: true, ..base() }),
            ("--classifier", MethodConfig { classifier: Some("spike".into()), ..base() }),
            ("--capacity", MethodConfig { capacity: Some(Rate::ip(1)), ..base() }),
        ];
        for (option, config) in capprobe {
            assert!(refused("capprobe", config).starts_with(option), "{option}");
        }
        let capacity = Some(Rate::ip(1));
        let wbest = [
            ("--pairs", MethodConfig { pairs: Some(30), capacity, ..base() }),
            ("--conservative", MethodConfig { conservative: true, capacity, ..base() }),
            ("--conservative", MethodConfig { conservative: true, faithful: true, ..base() }),
        ];
        for (option, config) in wbest {
            assert!(refused("wbest", config).starts_with(option), "{option}");
        }
    }
}
