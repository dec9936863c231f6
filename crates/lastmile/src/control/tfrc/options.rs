//! TFRC's options and presets.

use super::history::LossHistory;
use super::law::Law;
use super::ns2::Ns2Sender;
use super::sender::{RfcParameters, RfcSender};
use crate::units::Bytes;

crate::names! {
    /// Version of TFRC.
    pub enum Preset {
        /// RFC 5348's.
        #[default]
        Rfc = "rfc",
        /// TFRC of ns-2 2.35, which the papers used.
        Ns2 = "ns-2",
    }
}

crate::names! {
    /// Side that counts losses.
    pub enum Form {
        /// The sender, from reports of each packet (RFC 5348, section 7).
        #[default]
        Sender = "sender",
        /// The receiver, which reports X_recv and p.
        Receiver = "receiver",
    }
}

crate::options! {
    /// TFRC's parameters. Those without a value are the preset's.
    pub struct TfrcConfig {
        /// Side that counts losses, with a loss classifier in front: sender or receiver
        form: Form = Form::Sender, "RFC 5348, sections 6 and 7";
        /// TFRC of RFC 5348, or of ns-2 with all its departures from that
        preset: Preset = Preset::Rfc, "RFC 5348; ns-2 2.35, tcp/tfrc.cc and tfrc-sink.cc";
        /// Later packets that confirm a loss [default: 3, or 1 of ns-2]
        confirmations: Option<u32> [1..=100] = None, "RFC 5348, section 5.1: NDUPACK; ns-2: numPkts_";
        /// The least factor by which one long interval discounts the older ones; 1 for no discounting [default: 0.25, or 0.5 of ns-2]
        discount: Option<f64> [0.0..=1.0] = None, "RFC 5348, section 5.5: THRESHOLD; ns-2: minDiscountRatio_";
        /// The weight of the past in the round-trip time [default: 0.9, or 0.95 of ns-2]
        memory: Option<f64> [0.0..=0.999] = None, "RFC 5348, section 4.3: q; ns-2: df_";
        /// Bytes of each packet that are sent and not paced [default: 0 B, or 32 B of ns-2]
        header: Option<Bytes> [Bytes(0)..=Bytes(200)] = None, "ns-2: headersize_";
        /// Leave out the oscillation prevention
        unsteady: bool = false, "RFC 5348, section 4.5";
    }
}

/// A configuration with its preset filled in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    preset: Preset,
    confirmations: u8,
    threshold: f64,
    memory: f64,
    pub(super) header: f64,
    steady: bool,
}

impl TfrcConfig {
    pub(super) fn parameters(&self) -> Parameters {
        let (confirmations, threshold, memory, header) = match self.preset {
            Preset::Rfc => (3, 0.25, 0.9, 0),
            Preset::Ns2 => (1, 0.5, 0.95, 32),
        };
        Parameters {
            preset: self.preset,
            confirmations: self.confirmations.unwrap_or(confirmations).min(100) as u8,
            threshold: self.discount.unwrap_or(threshold),
            memory: self.memory.unwrap_or(memory),
            header: self.header.unwrap_or(Bytes(header)).0 as f64,
            steady: !self.unsteady,
        }
    }
}

impl Parameters {
    /// A loss history without a loss.
    pub(super) fn history(&self) -> LossHistory {
        LossHistory::new(self.confirmations, self.threshold)
    }

    /// The sender's law, for segments of `mss` bytes, from `start` bytes a second.
    pub(super) fn law(&self, mss: f64, start: Option<f64>) -> Box<dyn Law> {
        let Parameters { memory, steady, .. } = *self;
        match self.preset {
            Preset::Rfc => Box::new(RfcSender::new(RfcParameters { memory, steady, mss, start })),
            Preset::Ns2 => Box::new(Ns2Sender::new(memory, mss, start)),
        }
    }
}
