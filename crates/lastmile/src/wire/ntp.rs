//! Timestamps and the Error Estimate.

use super::WireError;

/// Seconds from 1900-01-01 (NTP era 0) to 1970-01-01, RFC 5905, figure 4.
const NTP_UNIX_OFFSET: u64 = 2_208_988_800;
/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// The two 64-bit timestamp formats of STAMP, told apart by the Z bit of the [`ErrorEstimate`] beside them.
///
/// Both carry wall time; the caller supplies and receives nanoseconds since 1970-01-01 of the time scale that its
/// clock keeps (NTP: UTC; PTP: by the book TAI, which is the caller's to add).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TimestampFormat {
    /// Z = 0: 32 bits of seconds since 1900 and 32 bits of fraction (RFC 5905, 6).
    #[default]
    Ntp,
    /// Z = 1: the low 32 bits of seconds since 1970 and 32 bits of nanoseconds (RFC 8186, 2.1).
    Ptp,
}

impl TimestampFormat {
    /// Nanoseconds since 1970 as the 64 bits of this format.
    ///
    /// Rounds to the nearest unit of 2^-32 s, so [`Self::to_unix_nanos`] gives the same nanosecond back.
    ///
    /// ```
    /// use lastmile::wire::TimestampFormat;
    /// assert_eq!(TimestampFormat::Ntp.from_unix_nanos(500_000_000), 0x83AA_7E80_8000_0000);
    /// assert_eq!(TimestampFormat::Ptp.from_unix_nanos(1_500_000_000), 0x0000_0001_1DCD_6500);
    /// ```
    #[must_use]
    pub fn from_unix_nanos(self, nanos: u64) -> u64 {
        let (seconds, rest) = (nanos / SECOND, nanos % SECOND);
        match self {
            // Seconds wrap with the NTP era in 2036 (RFC 5905, 6).
            Self::Ntp => {
                (seconds.wrapping_add(NTP_UNIX_OFFSET) << 32) | (((rest << 32) + SECOND / 2) / SECOND)
            }
            Self::Ptp => (seconds << 32) | rest,
        }
    }

    /// The 64 bits of this format as nanoseconds since 1970.
    ///
    /// NTP seconds with the top bit clear are of era 1 (RFC 4330, 3), so the range is 1970-01-01 to 2104; earlier
    /// instants (1968, 1969) read as 1970-01-01. PTP seconds are taken to be before 2106.
    ///
    /// # Errors
    /// [`WireError::Value`] for PTP nanoseconds of a second and more.
    pub fn to_unix_nanos(self, wire: u64) -> Result<u64, WireError> {
        let (seconds, rest) = (wire >> 32, wire & 0xFFFF_FFFF);
        match self {
            Self::Ntp => {
                let seconds = if seconds & 0x8000_0000 == 0 { seconds + (1 << 32) } else { seconds };
                let nanos = (rest * SECOND + (1 << 31)) >> 32;
                Ok(match seconds.checked_sub(NTP_UNIX_OFFSET) {
                    Some(since_1970) => since_1970 * SECOND + nanos,
                    None => 0,
                })
            }
            Self::Ptp if rest < SECOND => Ok(seconds * SECOND + rest),
            Self::Ptp => Err(WireError::Value { what: "the nanoseconds of a PTP timestamp", value: rest }),
        }
    }
}

/// Error Estimate: a clock's greatest error, its synchronisation bit, and the format of its timestamps.
///
/// ```text
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// |S|Z|   Scale   |   Multiplier  |     error = Multiplier * 2^(Scale - 32) seconds
/// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
/// ```
///
/// RFC 4656, 4.1.2; the Z bit is RFC 8186, 2.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorEstimate {
    /// S: the clock is synchronised to UTC by an external source.
    pub synchronized: bool,
    /// Z: format of the timestamps that this estimate speaks of.
    pub format: TimestampFormat,
    /// Power of two, 0 to 63; higher bits are not encoded.
    pub scale: u8,
    /// Factor; a sender must not send 0 (RFC 4656, 4.1.2), and [`Self::from_nanos`] never does.
    pub multiplier: u8,
}

impl ErrorEstimate {
    /// The smallest estimate that is not below `nanos`.
    ///
    /// ```
    /// use lastmile::wire::{ErrorEstimate, TimestampFormat};
    /// let error = ErrorEstimate::from_nanos(1_000_000, true, TimestampFormat::Ntp);
    /// assert!((1_000_000..1_008_000).contains(&error.nanos()));
    /// ```
    #[must_use]
    pub fn from_nanos(nanos: u64, synchronized: bool, format: TimestampFormat) -> Self {
        // At most 2^64 ns = 2^66 units of 2^-32 s: the scale ends at 59.
        let mut units = (u128::from(nanos) << 32).div_ceil(u128::from(SECOND)).max(1);
        let mut scale = 0;
        while units > 255 {
            units = units.div_ceil(2);
            scale += 1;
        }
        Self { synchronized, format, scale, multiplier: units as u8 }
    }

    /// The error in nanoseconds, rounded up; `u64::MAX` where it is longer than 584 years.
    #[must_use]
    pub fn nanos(self) -> u64 {
        let scaled = (u128::from(self.multiplier) * u128::from(SECOND)) << (self.scale & 63);
        u64::try_from(scaled.div_ceil(1 << 32)).unwrap_or(u64::MAX)
    }

    /// Reads the two octets. A Multiplier of 0, which no sender may write, is kept: [`Self::nanos`] is then 0.
    #[must_use]
    pub fn from_bits(bits: u16) -> Self {
        Self {
            synchronized: bits & 0x8000 != 0,
            format: if bits & 0x4000 == 0 { TimestampFormat::Ntp } else { TimestampFormat::Ptp },
            scale: (bits >> 8) as u8 & 63,
            multiplier: bits as u8,
        }
    }

    /// The two octets.
    #[must_use]
    pub fn bits(self) -> u16 {
        u16::from(self.synchronized) << 15
            | u16::from(self.format == TimestampFormat::Ptp) << 14
            | u16::from(self.scale & 63) << 8
            | u16::from(self.multiplier)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2036-02-07T06:28:16Z, where NTP's seconds wrap.
    const ERA_1: u64 = (1 << 32) - NTP_UNIX_OFFSET;

    #[test]
    fn known_ntp_instants() {
        // RFC 5905, figure 4: 1970-01-01 is 2208988800; 2000-01-01 is 3155673600 (946684800 Unix seconds).
        let ntp = TimestampFormat::Ntp;
        assert_eq!(ntp.from_unix_nanos(0), 2_208_988_800 << 32);
        assert_eq!(ntp.from_unix_nanos(946_684_800 * SECOND), 3_155_673_600 << 32);
        assert_eq!(ntp.from_unix_nanos(ERA_1 * SECOND), 0);
        assert_eq!(ntp.to_unix_nanos(0), Ok(ERA_1 * SECOND));
        assert_eq!(
            ntp.to_unix_nanos(0xFFFF_FFFF_FFFF_FFFF),
            Ok(ERA_1 * SECOND),
            "fraction rounds up into era 1"
        );
        assert_eq!(ntp.to_unix_nanos(0x8000_0000 << 32), Ok(0), "1968 is before our time");
    }

    #[test]
    fn ptp_nanoseconds_of_a_second_are_refused() {
        let ptp = TimestampFormat::Ptp;
        assert_eq!(ptp.to_unix_nanos(5 << 32 | 999_999_999), Ok(5_999_999_999));
        assert!(matches!(
            ptp.to_unix_nanos(1_000_000_000),
            Err(WireError::Value { value: 1_000_000_000, .. })
        ));
    }

    #[test]
    fn error_estimate_bits_follow_the_figure() {
        let error =
            ErrorEstimate { synchronized: true, format: TimestampFormat::Ptp, scale: 0x15, multiplier: 0xA3 };
        assert_eq!(error.bits(), 0b1101_0101_1010_0011);
        // 163 * 2^(21 - 32) s = 79.58984375 ms.
        assert_eq!(error.nanos(), 79_589_844);
        assert_eq!(ErrorEstimate::from_bits(0x0001).nanos(), 1, "a unit is 0.23 ns, rounded up");
        assert_eq!(ErrorEstimate::from_bits(0x3FFF).nanos(), u64::MAX);
        assert_eq!(ErrorEstimate::from_nanos(0, false, TimestampFormat::Ntp).multiplier, 1);
    }

    proptest! {
        #[test]
        fn timestamps_round_trip_to_the_nanosecond(seconds in 0..(1u64 << 32), nanos in 0..SECOND) {
            let instant = seconds * SECOND + nanos;
            for format in [TimestampFormat::Ntp, TimestampFormat::Ptp] {
                // Era 1 seconds above 2^31 would be 2104 and later.
                if format == TimestampFormat::Ptp || seconds < ERA_1 + (1 << 31) {
                    prop_assert_eq!(format.to_unix_nanos(format.from_unix_nanos(instant)), Ok(instant));
                }
            }
        }

        #[test]
        fn any_timestamp_reads(wire: u64) {
            let _ = TimestampFormat::Ntp.to_unix_nanos(wire);
            let _ = TimestampFormat::Ptp.to_unix_nanos(wire);
        }

        #[test]
        fn error_estimates_round_trip(bits: u16) {
            prop_assert_eq!(ErrorEstimate::from_bits(bits).bits(), bits);
        }

        #[test]
        fn error_estimate_is_a_tight_upper_bound(nanos in 1u64..) {
            let got = ErrorEstimate::from_nanos(nanos, false, TimestampFormat::Ntp).nanos();
            prop_assert!(got >= nanos);
            prop_assert!(got as f64 <= nanos as f64 * (1.0 + 1.0 / 127.0) + 1.0, "{} for {}", got, nanos);
        }
    }
}
