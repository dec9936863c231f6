//! Descriptions of videos: whatever is read is written, and read again as the same.
#![no_main]

use lastmile::wire::sdp::Video;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(video) = text.parse::<Video>() else { return };
    let again: Video = video.to_string().parse().expect("it was just written");
    assert!(again.parameter_sets.iter().eq(video.parameter_sets.iter().filter(|set| !set.is_empty())));
    assert_eq!(Video { parameter_sets: Vec::new(), ..again }, Video { parameter_sets: Vec::new(), ..video });
});
