//! NADA's options: RFC 8698's names and defaults (table 2).

use crate::time::Span;
use crate::units::Rate;

crate::names! {
    /// Intervals in the average loss interval, a multiple of which is the time after which a loss is forgotten.
    pub enum LossInterval {
        /// The open one too, by RFC 5348, section 5.4: no loss is ever forgotten, since the average grows with it.
        #[default]
        Open = "open",
        /// The closed ones alone.
        Closed = "closed",
    }
}

crate::options! {
    /// NADA's parameters.
    pub struct NadaConfig {
        /// Weight of priority of the flow
        prio: f64 [0.01..=100.0] = 1.0, "RFC 8698, table 2: PRIO";
        /// The sources' least rate; nothing for the setting's and theirs
        rmin: Option<Rate> [Rate::ip(0)..=Rate::ip(10_000_000_000)] = None, "RFC 8698, section 4.3: RMIN, 0 without knowledge";
        /// The sources' highest rate; nothing for the setting's and theirs, or 3 Mbit/s where they have none
        rmax: Option<Rate> [Rate::ip(1_000)..=Rate::ip(10_000_000_000)] = None, "RFC 8698, section 4.3: RMAX, 3 Mbit/s without knowledge";
        /// Most of the congestion signal
        xmax: Span [Span::from_millis(1)..=Span::from_micros(3_276_700)] = Span::from_millis(500), "the authors' ns3-rmcat; RFC 8698, section 5.3, can carry 3.28 s";
        /// Congestion signal at the highest rate
        xref: Span [Span::from_micros(1)..=Span::from_secs(1)] = Span::from_millis(10), "RFC 8698, table 2: XREF";
        /// Gain of the gradual update
        kappa: f64 [0.001..=10.0] = 0.5, "RFC 8698, table 2: KAPPA";
        /// Gain of the signal's change over that of its offset
        eta: f64 [0.0..=100.0] = 2.0, "RFC 8698, table 2: ETA";
        /// Upper bound of the round-trip time in the gradual update
        tau: Span [Span::from_millis(1)..=Span::from_secs(10)] = Span::from_millis(500), "RFC 8698, table 2: TAU";
        /// Time between updates, at the feedback that is nearest
        delta: Span [Span::from_millis(1)..=Span::from_secs(1)] = Span::from_millis(100), "RFC 8698, table 2: DELTA";
        /// Window of losses, marks, delays and the receiving rate
        logwin: Span [Span::from_millis(10)..=Span::from_secs(10)] = Span::from_millis(500), "RFC 8698, table 2: LOGWIN";
        /// Queueing delay of a packet that ends the ramp-up
        qeps: Span [Span::from_micros(1)..=Span::from_secs(1)] = Span::from_millis(10), "RFC 8698, table 2: QEPS";
        /// Bound on the delay of filters
        dfilt: Span [Span::ZERO..=Span::from_secs(1)] = Span::from_millis(120), "RFC 8698, table 2: DFILT";
        /// Upper bound of the ramp-up's step
        gamma_max: f64 [0.0..=10.0] = 0.5, "RFC 8698, table 2: GAMMA_MAX";
        /// Upper bound of the queue that the ramp-up makes
        qbound: Span [Span::ZERO..=Span::from_secs(1)] = Span::from_millis(50), "RFC 8698, table 2: QBOUND";
        /// Average loss intervals after which a loss is forgotten
        multiloss: f64 [0.0..=1_000.0] = 7.0, "RFC 8698, table 2: MULTILOSS";
        /// Intervals in that average: open, or closed
        loss_int: LossInterval = LossInterval::Open, "RFC 8698, section 4.2: RFC 5348, section 5.4; closed is our own";
        /// Queueing delay above which delays are warped while losses are remembered
        qth: Span [Span::from_millis(1)..=Span::from_secs(10)] = Span::from_millis(50), "RFC 8698, table 2: QTH";
        /// Exponent of the warping
        lambda: f64 [0.0..=100.0] = 0.5, "RFC 8698, table 2: LAMBDA";
        /// Reference loss ratio
        plrref: f64 [0.000_1..=1.0] = 0.01, "RFC 8698, table 2: PLRREF";
        /// Reference marking ratio
        pmrref: f64 [0.000_1..=1.0] = 0.01, "RFC 8698, table 2: PMRREF";
        /// Delay that the reference loss ratio stands for
        dloss: Span [Span::ZERO..=Span::from_secs(10)] = Span::from_millis(10), "RFC 8698, table 2: DLOSS";
        /// Delay that the reference marking ratio stands for
        dmark: Span [Span::ZERO..=Span::from_secs(10)] = Span::from_millis(2), "RFC 8698, table 2: DMARK";
        /// Weight of the newest ratio of losses and marks
        alpha: f64 [0.001..=1.0] = 0.1, "RFC 8698, table 2: ALPHA";
        /// Frames a second, for the rate-shaping buffer
        fps: f64 [0.1..=1_000.0] = 30.0, "RFC 8698, table 2: FPS";
        /// Gain of the rate-shaping buffer on the sending rate
        beta_s: f64 [0.0..=10.0] = 0.1, "RFC 8698, table 2: BETA_S";
        /// Gain of the rate-shaping buffer on the sources' rate
        beta_v: f64 [0.0..=10.0] = 0.1, "RFC 8698, table 2: BETA_V";
        /// Time after which a base delay is forgotten
        base: Span [Span::from_secs(1)..=Span::from_secs(86_400)] = Span::from_secs(1_200), "RFC 8698, section 5.1.1: tens of minutes";
    }
}
