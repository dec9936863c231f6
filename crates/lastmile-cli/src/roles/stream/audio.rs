//! Audio beside the frames of a stream: a stand-in of a constant rate, which comes first where both share a controller.

use anyhow::anyhow;
use lastmile::control::{RateController, StreamGroup};
use lastmile::endpoint::stream::{
    AUDIO, ControlConfig, Retransmission, SenderConfig, SenderRate, SourceConfig,
};
use lastmile::options::Choice;
use lastmile::units::Rate;

use crate::shell::exit::Exit;

/// The usual rate of IP packets: 64 kbit/s of Opus or G.711 in 50 packets of 160 B, and headers of IPv4, UDP and RTP.
pub(crate) const USUAL: &str = "80 kbit/s";
/// Rates that make sense: headers of 50 packets take 24 kbit/s by IPv6.
const RATES: std::ops::RangeInclusive<Rate> = Rate::ip(40_000)..=Rate::ip(1_000_000);
/// Packets in a second, each of which has 20 ms of sound.
const PACKETS: f64 = 50.0;
/// Both have the audio's rate and what is left: the higher one is met first where there is too little.
const PRIORITIES: [f64; 2] = [1.0, 4.0];

/// Audio, and the shares of one controller for the frames and for itself; none at fixed rates.
pub(crate) struct Audio {
    pub(crate) config: SenderConfig,
    pub(crate) shares: Option<[Box<dyn RateController>; 2]>,
}

impl Audio {
    /// Audio of that rate beside frames, which get what it leaves of the highest rate.
    pub(crate) fn beside(media: &mut SenderConfig, rate: Rate, ssrc: u32) -> anyhow::Result<Audio> {
        let wrong = |text: String| Exit::Usage.blame(anyhow!("--audio: {text}"));
        if !RATES.contains(&rate) {
            return Err(wrong(format!("its rate must be {} to {}, not {rate}", RATES.start(), RATES.end())));
        }
        let mut config = SenderConfig {
            ssrc,
            payload_type: AUDIO,
            rate: SenderRate::Fixed(rate),
            source: SourceConfig::default(),
            frame_rate: PACKETS,
            retransmission: media.retransmission.map(|repeats| Retransmission { ssrc: !ssrc, ..repeats }),
            ..media.clone()
        };
        let SenderRate::Controlled(control) = &mut media.rate else {
            return Ok(Audio { config, shares: None });
        };
        if control.control.at_receiver() {
            return Err(wrong(format!(
                "the receiver counts losses of each stream alone: not with {}",
                control.control
            )));
        }
        let group = StreamGroup::new(
            control
                .build(media.packet_size)
                .map_err(|error| Exit::Usage.blame(anyhow!("--control: {error}")))?,
        );
        let left = control.max.bits_per_second().saturating_sub(rate.bits_per_second());
        control.max = Rate::ip(left);
        if control.max < control.min {
            return Err(wrong(format!(
                "--max leaves {} beside it, less than the lowest rate, {}",
                control.max, control.min
            )));
        }
        let bits = format!("{} bit/s", rate.bits_per_second());
        config.source.source = Some(Choice::named("cbr").with("min", &bits).with("max", &bits));
        // Its source asks for all of it; where the controller has less, its packets wait and are left out.
        let min = if control.min < rate { control.min } else { rate };
        let limits = ControlConfig { min, max: rate, start: None, ..control.clone() };
        let [frames, audio] = PRIORITIES;
        let shares =
            group.stream(frames, control.min..=control.max).zip(group.stream(audio, limits.min..=limits.max));
        config.rate = SenderRate::Controlled(limits);
        let (frames, audio) = shares.ok_or_else(|| anyhow!("a group of streams has no room for two"))?;
        Ok(Audio { config, shares: Some([frames, audio]) })
    }
}
