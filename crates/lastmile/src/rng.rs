//! One random stream per component, seeded from the scenario's seed and the component's name.
//!
//! Adding a flow to a scenario must not change what the other flows draw: otherwise no two scenarios could be
//! compared under "the same" cross traffic. So nothing shares a stream, and a component's name decides its own.

use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;

/// The random numbers of one component.
///
/// ```
/// use lastmile::rng::Stream;
/// let mut a = Stream::new(1, "traffic/web");
/// let mut b = Stream::new(1, "traffic/video");
/// assert_ne!(a.bits(), b.bits());
/// assert_eq!(Stream::new(1, "traffic/web").bits(), Stream::new(1, "traffic/web").bits());
/// ```
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The stream of the component called `component` in a run with seed `seed`.
    pub fn new(seed: u64, component: &str) -> Stream {
        let low = mix(fnv(seed, component.as_bytes()));
        let high = mix(fnv(!seed, component.as_bytes()) ^ low.rotate_left(32));
        Stream(Pcg64Mcg::new(u128::from(high) << 64 | u128::from(low)))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// An exponentially distributed number with that mean; never infinite, since [`unit`](Stream::unit) is
    /// below one.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// A number of the normal distribution with mean 0 and deviation 1 (Box and Muller, 1958).
    pub fn gaussian(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(core::f64::consts::TAU * self.unit())
    }
}

/// FNV-1a over the seed's bytes and the name. std's hashers are not stable between releases.
fn fnv(seed: u64, name: &[u8]) -> u64 {
    seed.to_le_bytes()
        .iter()
        .chain(name)
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): FNV's high bits are weak for short names.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_draws_stay_what_they_are_on_every_machine_and_release() {
        let mut stream = Stream::new(1, "traffic/cross");
        let draws: Vec<u64> = (0..8).map(|_| stream.bits()).collect();
        assert_eq!(draws, SNAPSHOT);
    }

    const SNAPSHOT: [u64; 8] = [
        2_786_788_799_311_437_219,
        13_817_998_044_723_576_655,
        6_718_389_468_671_593_844,
        15_175_621_629_501_926_360,
        5_456_851_169_580_452_100,
        7_306_614_291_619_330_377,
        11_157_228_815_018_769_657,
        17_177_696_738_060_703_301,
    ];

    #[test]
    fn exponential_draws_have_their_mean() {
        let mut stream = Stream::new(3, "x");
        let mean = (0..100_000).map(|_| stream.exponential(5.0)).sum::<f64>() / 1e5;
        assert!((mean - 5.0).abs() < 0.05, "{mean}");
    }

    #[test]
    fn gaussian_draws_have_mean_and_deviation() {
        let mut stream = Stream::new(1, "x");
        let draws: Vec<f64> = (0..100_000).map(|_| stream.gaussian()).collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }
}
