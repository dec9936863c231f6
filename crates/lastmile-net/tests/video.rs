//! Real video in the simulator, where coding takes no time: delays from the source to the screen, and ten minutes of it.

#![allow(clippy::print_stdout, reason = "numbers for docs/streams.md")]

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use lastmile::endpoint::stream::{CLOCK_RATE, FrameSink, PlayedFrame, SenderRate};
use lastmile::observe::stats::quantile_of_sorted;
use lastmile::time::{Span, Time};
use lastmile_net::media::h264::H264Encoder;
use lastmile_net::media::{TestPattern, VideoSource};
use lastmile_sim::roles::Makers;
use lastmile_sim::roles::stream::Video;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::{RunError, Scenario};

/// Memory is the process's: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// A frame that came: its time at the source and at the screen, in seconds on their clocks, and whether it came too late.
type Came = (f64, f64, bool);

/// Notes the frames.
#[derive(Clone, Default)]
struct Clock(Arc<Mutex<Vec<Came>>>);

impl FrameSink for Clock {
    fn frame(&mut self, now: Time, _: u32, frame: &PlayedFrame) -> bool {
        let source = f64::from(frame.unit.timestamp) / f64::from(CLOCK_RATE);
        self.0.lock().unwrap().push((source, (now - Time::ZERO).as_secs_f64(), frame.late));
        true
    }
    fn left(&mut self, _: u32) {}
}

/// The frames of the test pattern in that size at 30 frames/s.
fn shown(scenario: &str, (width, height): (usize, usize), hooks: Hooks) -> Vec<Came> {
    let clock = Clock::default();
    let viewer = clock.clone();
    let make = Makers::registered(Span::ZERO, 1).filming(move |_, config| {
        let setting = config.source_setting();
        let most = match &config.rate {
            SenderRate::Fixed(rate) => *rate,
            SenderRate::Controlled(control) => control.max,
        };
        let payload = (setting.packet_size.0 - setting.headers.0) as usize;
        let source = H264Encoder::new(most, 30.0, payload).and_then(|encoder| {
            let pattern = Box::new(TestPattern::new(width, height, 30.0)?);
            VideoSource::new(pattern, Box::new(encoder), (width, height), most, &setting)
        });
        let (source, _) = source.map_err(|error| RunError::Make(error.to_string()))?;
        Ok(Some(Video { source: Box::new(source.untimed()), viewer: Box::new(viewer.clone()) }))
    });
    let scenario = Scenario::parse("video.toml", scenario).unwrap();
    simulate(&scenario, 1, &make, hooks).unwrap();
    std::mem::take(&mut clock.0.lock().unwrap())
}

/// From the source to the screen a frame takes less than 60 ms beyond a path of 40 ms whose queue nothing fills, by the median of the frames
/// after the first five seconds.
#[test]
fn frames_are_on_the_screen_within_60_ms_beyond_the_path_without_congestion() {
    let _alone = ALONE.lock().unwrap();
    for stream in [
        "rate = \"2 Mbit/s\"",
        "control = \"tfrc\"\nmax_rate = \"2 Mbit/s\"",
        "control = \"vtp\"\nmax_rate = \"2 Mbit/s\"",
        "control = \"lastmile\"\nmax_rate = \"2 Mbit/s\"",
    ] {
        let scenario = format!(
            "name = \"screen\"\nduration = \"15 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"20 Mbit/s\"\n\
             delay = \"40 ms\"\nqueue = \"200 packets\"\n[[stream]]\nfrom = \"a\"\nto = \"b\"\n{stream}\n"
        );
        let frames = shown(&scenario, (640, 480), Hooks::default());
        let in_time = frames.iter().filter(|(source, _, late)| *source > 5.0 && !late);
        let mut delays: Vec<f64> = in_time.map(|(source, at, _)| 1e3 * (at - source)).collect();
        delays.sort_by(f64::total_cmp);
        let [median, late] = [0.5, 0.95].map(|q| quantile_of_sorted(&delays, q).unwrap());
        println!("{stream}: {} frames, median {median:.1} ms, 95 % within {late:.1} ms", delays.len());
        assert!(delays.len() > 280, "{stream}: {} frames of 300", delays.len());
        assert!(median < 40.0 + 60.0, "{stream}: {median} ms");
    }
}

/// Resident memory of this process, in MB.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

/// Ten minutes with 1 % of random losses, packets that overtake each other, and a capacity between 1 and 3 Mbit/s, to a receiver whose clock
/// is 100 ppm fast: neither memory nor what waits for the screen grows.
#[test]
fn ten_minutes_of_video_take_no_more_memory_and_follow_a_clock_that_drifts() {
    let steps: Vec<String> = (1..10)
        .map(|minute| {
            format!("{{ at = \"{} s\", rate = \"{} Mbit/s\" }}", 60 * minute, 1 + 2 * ((minute + 1) % 2))
        })
        .collect();
    let scenario = format!(
        "name = \"ten\"\nduration = \"600 s\"\n[host.a]\n[host.b]\nclock = {{ skew_ppm = 100.0 }}\n[[link]]\nfrom = \"a\"\nto = \"b\"\n\
         rate = \"3 Mbit/s\"\ndelay = \"40 ms\"\nqueue = \"60 kB\"\njitter = {{ kind = \"uniform\", max = \"10 ms\", reorder = true }}\n\
         losses = [{{ model = {{ kind = \"bernoulli\", rate = \"1%\" }} }}]\nchanges = [{}]\n[[stream]]\nfrom = \"a\"\nto = \"b\"\n\
         control = \"tfrc+spike\"\nmax_rate = \"800 kbit/s\"\n",
        steps.join(", ")
    );
    let _alone = ALONE.lock().unwrap();
    let resident: Arc<Mutex<Vec<f64>>> = Arc::default();
    let noted = Arc::clone(&resident);
    let progress = move |_| {
        noted.lock().unwrap().push(memory());
        ControlFlow::Continue(())
    };
    let hooks = Hooks { progress: Some(Box::new(progress)), ..Hooks::default() };
    let frames = shown(&scenario, (160, 120), hooks);
    // Its clock gains 60 ms in ten minutes.
    let delay = |from: f64, to: f64| {
        let within = frames.iter().filter(|(source, ..)| (from..to).contains(source));
        let mut delays: Vec<f64> =
            within.map(|(source, at, _)| 1e3 * (at / (1.0 + 100e-6) - source)).collect();
        delays.sort_by(f64::total_cmp);
        quantile_of_sorted(&delays, 0.5).unwrap()
    };
    // The first and the last minute with 3 Mbit/s.
    let (first, last) = (delay(10.0, 60.0), delay(490.0, 540.0));
    println!("median delay {first:.1} ms in the first minute, {last:.1} ms in the ninth");
    assert!((last - first).abs() < 20.0, "{first} ms, then {last}");
    let resident = resident.lock().unwrap();
    let grown = resident.last().unwrap() - resident[resident.len() / 10];
    let late = frames.iter().filter(|(.., late)| *late).count();
    println!("{} frames, {late} late; {grown:.1} MB more", frames.len());
    assert!(grown < 5.0, "{grown} MB");
    assert!(frames.len() > 16_000 && late * 100 < frames.len(), "{} frames, {late} late", frames.len());
}
