//! `lastmile demo` in the lab, brief.

use crate::common::{Scratch, lastmile};
use crate::no_lab;

#[test]
#[ignore = "meets the wall clock: runs alone"]
fn wallclock_the_demo_measures_sends_video_and_draws_a_page() {
    if no_lab() {
        return;
    }
    let scratch = Scratch::new("demo");
    let page = scratch.path("demo.html");
    let ended = lastmile(&["demo", "--seconds", "3", "--html", &page]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for said in ["truth", "nder tfrc", "nder lastmile", "as a page"] {
        assert!(ended.stdout.contains(said), "{said}: {}", ended.stdout);
    }
    let long = ended.stdout.lines().find(|line| line.chars().count() > 80);
    assert_eq!(long, None);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("The first measurement, packet by packet") && page.contains("WBest"));
    // The worst second and the source, of both videos, and the second at the first's worst, if it goes on so long; builds without real video
    // have none.
    let stills = if cfg!(feature = "video") { 4..=5 } else { 0..=0 };
    assert!(stills.contains(&page.matches("data:image/png;base64,").count()));
}
