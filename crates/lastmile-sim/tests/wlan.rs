//! 802.11 against ns-2, ns-3 3.37 and arithmetic where `oracles/` does not go, and the invariants that hold whatever the
//! numbers.

use lastmile::node::PortId;
use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::wlan::{
    AfterCollision, AmpduConfig, ChannelConfig, RateControl, Standard, StationConfig, WlanConfig,
};

mod common;

use common::wlan::{Run, b, clients, run, saturated, within};

/// ORACLES 1.3: ns-3's own figures, by the default rule; the other rules are not far.
#[test]
fn dcf_saturation_is_near_ns3s() {
    let (g, b) = (WlanConfig::default(), b());
    for (config, n, ns3, p) in
        [(&g, 2, 30.61, 0.110), (&g, 10, 27.77, 0.371), (&b, 2, 6.480, 0.060), (&b, 10, 6.116, 0.285)]
    {
        for (after_collision, share) in
            [(AfterCollision::Difs, 0.015), (AfterCollision::Timeout, 0.015), (AfterCollision::Eifs, 0.035)]
        {
            let config = WlanConfig { after_collision, ..config.clone() };
            let run = saturated(&config, n, 60);
            let what = format!("802.11{} n {n} {after_collision:?}", config.standard);
            within(run.total(), ns3, share, &what);
            assert!(
                (run.collision_probability() - p).abs() < 0.02,
                "{what}: {}",
                run.collision_probability()
            );
        }
    }
}

/// ns-2 2.35 (mean of two seeds, long preamble, ACK at 2 Mbit/s), which keeps the standard's letter.
#[test]
fn with_eifs_dcf_saturation_is_ns2s() {
    for (n, ns2) in [(2, 6.497), (5, 6.346), (10, 5.951)] {
        let config = WlanConfig { after_collision: AfterCollision::Eifs, ..b() };
        within(saturated(&config, n, 60).total(), ns2, 0.01, &format!("802.11b n {n}"));
    }
}

/// What is not in the oracles, by hand: DIFS and mean backoff 95.5 us, then what precedes the data, data 254 us,
/// SIFS and ACK 44 us.
#[test]
fn requests_and_protection_cost_their_frames() {
    let flow = [("ap", "sta0", 50.0, 1500)];
    // RTS and CTS at 24 Mbit/s are 34 us each, with a SIFS after each.
    let rts = WlanConfig { rts_threshold: Some(Bytes(1000)), ..Default::default() };
    within(run(&clients(rts, 1), &flow, 20, 1).total(), 12_000.0 / 481.5, 0.005, "RTS");
    // Long slots: 50 + 150 us; a CTS at 11 Mbit/s takes 192 + 10.2 us, and a SIFS.
    let slot = lastmile_sim::network::wlan::SlotTime::Long;
    let protection = lastmile_sim::network::wlan::Protection::CtsToSelf;
    let mixed = WlanConfig { slot, protection, ..Default::default() };
    let alone = run(&clients(mixed.clone(), 1), &flow, 20, 1).total();
    within(alone, 12_000.0 / (200.0 + 212.2 + 254.0 + 44.0), 0.005, "CTS to self");
    // A station of b beside it has its own frames and its ACKs at 2 Mbit/s.
    let mut config = clients(WlanConfig { after_collision: AfterCollision::Difs, ..mixed }, 2);
    config.station[2].rate = Some(Rate::ip(11_000_000));
    let both = run(&config, &[("ap", "sta0", 20.0, 1500), ("sta1", "ap", 20.0, 1500)], 20, 1);
    within(both.mbps(0), both.mbps(1), 0.1, "g against b");
    assert!(both.total() < 0.75 * alone, "{} {alone}", both.total());
}

/// Fading that a sampler follows: what it loses is noise, not collisions, and not much.
#[test]
fn shadowing_loses_by_noise_and_rate_control_saves_most_of_it() {
    let at = |rate_control| {
        let mut config = clients(WlanConfig::default(), 1);
        config.station[1].rate_control = rate_control;
        let shadowed =
            ChannelConfig { distance_m: 25.0, shadowing_db: 8.0, tx_power_dbm: 10.0, ..Default::default() };
        config.station[1].channel = Some(shadowed);
        let run = run(&config, &[("ap", "sta0", 2.0, 1500)], 60, 1);
        let counters = *run.wlan().counters(PortId(1)).unwrap();
        assert_eq!(counters.lost_collision, 0);
        (counters.delivered, counters.lost_channel)
    };
    let (fixed, minstrel) = (at(RateControl::Fixed), at(RateControl::Minstrel));
    assert!(fixed.1 > 100, "{fixed:?}");
    assert!(minstrel.1 * 4 < fixed.1 && minstrel.0 > fixed.0, "{minstrel:?} {fixed:?}");
}

/// A slow station takes the others' air: with equal packets both get the same rate (the performance anomaly,
/// Heusse et al., INFOCOM 2003).
#[test]
fn a_slow_station_slows_the_fast_one_to_its_own_rate() {
    let mut config = clients(b(), 2);
    config.station[1].rate = Some(Rate::ip(1_000_000));
    let run = run(&config, &[("sta0", "ap", 20.0, 1500), ("sta1", "ap", 20.0, 1500)], 60, 1);
    within(run.mbps(1), run.mbps(0), 0.1, "fast against slow");
    let (slow, fast) =
        (run.wlan().station_airtime(1).as_secs_f64(), run.wlan().station_airtime(2).as_secs_f64());
    assert!(slow > 6.0 * fast, "{slow} {fast}");
}

/// Two access points on one channel share it as two stations of one do.
#[test]
fn overlapping_cells_share_the_channel() {
    let mut config = clients(WlanConfig::default(), 1);
    config.station.push(StationConfig { name: "other".into(), ..Default::default() });
    config.station.push(StationConfig {
        name: "guest".into(),
        ap: Some("other".into()),
        ..Default::default()
    });
    let run = run(&config, &[("ap", "sta0", 40.0, 1500), ("other", "guest", 40.0, 1500)], 30, 1);
    within(run.mbps(0), run.mbps(1), 0.05, "cell against cell");
    within(run.total(), 31.00, 0.01, "both");
}

/// With noise on single frames the transport sees only what seven transmissions could not bring through.
#[test]
fn the_transport_sees_what_retries_leave() {
    let mut config = clients(WlanConfig::default(), 1);
    config.station[1].frame_error = 0.5;
    config.station[0].queue = 300;
    let run = run(&config, &[("ap", "sta0", 3.0, 1500)], 200, 1);
    let counters = run.wlan().counters(PortId(1)).unwrap();
    assert_eq!((counters.lost_collision, counters.lost_queue), (0, 0));
    within(counters.lost_channel as f64 / counters.arrived as f64, 1.0 / 128.0, 0.15, "residual loss");
}

#[test]
fn aggregation_multiplies_what_a_single_frame_brings() {
    let single = WlanConfig { standard: Standard::N, ..Default::default() };
    let many = WlanConfig { ampdu: Some(AmpduConfig::default()), ..single.clone() };
    let flow = [("ap", "sta0", 80.0, 1500)];
    let (one, all) = (run(&clients(single, 1), &flow, 10, 1), run(&clients(many, 1), &flow, 10, 1));
    within(
        one.total(),
        one.wlan().capacity(PortId(1), Bytes(1500)).unwrap().bits_per_second() as f64 / 1e6,
        0.005,
        "single",
    );
    within(
        all.total(),
        all.wlan().capacity(PortId(1), Bytes(1500)).unwrap().bits_per_second() as f64 / 1e6,
        0.01,
        "aggregate",
    );
    assert!(all.total() > 1.6 * one.total() && all.total() < 65.0, "{} {}", one.total(), all.total());
}

#[test]
fn rate_control_finds_the_rate_that_the_channel_carries() {
    // 16 dB: 24 or 36 Mbit/s work, 54 does not.
    let at = |rate_control| {
        let mut config = clients(WlanConfig::default(), 1);
        config.station[1].rate_control = rate_control;
        config.station[1].channel = Some(ChannelConfig { snr_db: Some(16.0), ..Default::default() });
        run(&config, &[("ap", "sta0", 40.0, 1500)], 20, 1).total()
    };
    let (fixed, arf, aarf, minstrel) =
        (at(RateControl::Fixed), at(RateControl::Arf), at(RateControl::Aarf), at(RateControl::Minstrel));
    assert!(fixed < 0.5 && arf > 10.0 && aarf > arf && minstrel > 14.0);
}

#[test]
fn a_station_more_leaves_the_others_draws_alone() {
    // The third station never sends, so that nothing but the draws could differ.
    let flows = [("sta0", "ap", 40.0, 1500), ("sta1", "ap", 40.0, 1500)];
    let two = run(&clients(WlanConfig::default(), 2), &flows, 2, 9);
    let three = run(&clients(WlanConfig::default(), 3), &flows, 2, 9);
    for flow in 0..2 {
        let counters = |run: &Run| *run.engine.sink(run.sinks[flow]).unwrap().counters();
        assert_eq!(counters(&two), counters(&three));
    }
}
