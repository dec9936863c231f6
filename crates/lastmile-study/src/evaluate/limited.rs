//! Sources that make less than their target for reasons of their own: the rate at which one comes back, and layers of fixed rates, which
//! are sent or not. Rates are lists: the mean over each step.

use std::ops::Range;

use super::frames::Frame;
use super::metrics::{SECOND, STEP_S};
use super::path::Layer;

/// A source rests while it makes no more than so many times its idle rate, for a second.
const RESTS: f64 = 2.0;
/// Steps that are looked at from a return on: three seconds.
const AFTER: usize = 3 * SECOND;
/// A layer has room where it takes no more than this share of the rate that is left to its stream.
const ROOM: f64 = 0.9;
/// Steps that a layer has room for, or it is not looked at: five seconds.
const SHORTEST: usize = 5 * SECOND;
/// Steps within which ends of a layer are counted: half a minute.
const FLAPS: usize = 30 * SECOND;

fn step(frame: &Frame) -> usize {
    (frame.made_s / STEP_S + 1e-6) as usize
}

/// The rate that a source made in each step, by its frames.
pub(super) fn made(frames: &[Frame], steps: usize) -> Vec<f64> {
    let mut made = vec![0.0; steps];
    for frame in frames {
        if let Some(rate) = made.get_mut(step(frame)) {
            *rate += frame.bytes as f64 * 8.0 / STEP_S;
        }
    }
    made
}

/// The highest rate sent in a step within three seconds after a source came back, over the rate that was left to it then. It comes back as it
/// makes more than twice its idle rate, after a second of less.
pub(super) fn overshoot(made: &[f64], idle: f64, sent: &[f64], left: &[f64]) -> Option<f64> {
    let rests = |rate: &f64| *rate > 0.0 && *rate <= RESTS * idle;
    let returns =
        (SECOND..made.len()).filter(|&at| made[at] > RESTS * idle && made[at - SECOND..at].iter().all(rests));
    let after = |at: usize| sent.iter().zip(left).skip(at).take(AFTER).filter(|(_, left)| **left > 0.0);
    returns.flat_map(after).map(|(sent, left)| sent / left).reduce(f64::max)
}

/// The layer that is sent in each step, by the largest of its frames: the one whose frames come nearest. Without frames, that of before.
pub(super) fn layers_sent(frames: &[Frame], layers: &[Layer], steps: usize) -> Vec<usize> {
    let mut largest = vec![0; steps];
    for frame in frames {
        if let Some(bytes) = largest.get_mut(step(frame)) {
            *bytes = frame.bytes.max(*bytes);
        }
    }
    let apart = |layer: &Layer, bytes: u64| (bytes as f64 / layer.frame).ln().abs();
    let nearest = |bytes: u64| {
        let by = |a: &usize, b: &usize| apart(&layers[*a], bytes).total_cmp(&apart(&layers[*b], bytes));
        (0..layers.len()).min_by(by).unwrap_or(0)
    };
    let mut layer = 0;
    let each = largest.into_iter().map(|bytes| {
        layer = if bytes > 0 { nearest(bytes) } else { layer };
        layer
    });
    each.collect()
}

/// The longest time, in seconds, from when a layer has room until it or a higher one is sent; of one that is not sent before its room ends, the
/// time of that.
pub(super) fn layer_after(
    sent: &[usize],
    layers: &[Layer],
    left: &[f64],
    active: Range<usize>,
) -> Option<f64> {
    let end = active.end.min(sent.len()).min(left.len());
    let mut longest: Option<usize> = None;
    for (layer, Layer { rate, .. }) in layers.iter().enumerate().skip(1) {
        let mut from = active.start;
        while from < end {
            let has_room = |step: &usize| *rate <= ROOM * left[*step];
            let Some(begins) = (from..end).find(has_room) else { break };
            from = (begins..end).find(|step| !has_room(step)).unwrap_or(end);
            if from - begins >= SHORTEST {
                let until = (begins..from).find(|step| sent[*step] >= layer).unwrap_or(from);
                longest = longest.max(Some(until - begins));
            }
        }
    }
    longest.map(|steps| steps as f64 * STEP_S)
}

/// The most times that one layer ended within half a minute.
pub(super) fn flaps(sent: &[usize], layers: usize) -> Option<usize> {
    let of = |layer: usize| {
        let ends: Vec<usize> =
            (1..sent.len()).filter(|&step| sent[step] < layer && sent[step - 1] >= layer).collect();
        ends.iter().map(|&first| ends.iter().filter(|at| (first..first + FLAPS).contains(at)).count()).max()
    };
    (layers > 1).then(|| (1..layers).filter_map(of).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many seconds of each.
    fn list<T: Copy>(parts: &[(usize, T)]) -> Vec<T> {
        parts.iter().flat_map(|&(seconds, value)| vec![value; seconds * SECOND]).collect()
    }

    const LAYERS: [Layer; 3] = [
        Layer { rate: 1e6, frame: 1_000.0 },
        Layer { rate: 2e6, frame: 2_000.0 },
        Layer { rate: 4e6, frame: 4_000.0 },
    ];

    /// 30 kbit/s for five seconds, and 2 Mbit/s for five; 3 Mbit/s leave in the third step of that, over 2 Mbit/s.
    #[test]
    fn an_overshoot_is_of_the_seconds_after_a_return() {
        let made = list(&[(5, 3e4), (5, 2e6)]);
        let mut sent = made.clone();
        sent[27] = 3e6;
        let left = list(&[(10, 2e6)]);
        assert_eq!(overshoot(&made, 3e4, &sent, &left), Some(1.5));
        // Later, and before, it is none; nor is it if the path had 3 Mbit/s.
        for at in [24, 41] {
            let mut sent = made.clone();
            sent[at] = 3e6;
            assert_eq!(overshoot(&made, 3e4, &sent, &left), Some(1.0));
        }
        assert_eq!(overshoot(&made, 3e4, &sent, &list(&[(10, 3e6)])), Some(1.0));
        // A rest of 0.8 s is none, and neither is the time before the first frame.
        let short = [&[2e6; 20][..], &[3e4; 4], &[2e6; 20]].concat();
        assert_eq!(overshoot(&short, 3e4, &short, &list(&[(10, 2e6)])), None);
        assert_eq!(overshoot(&list(&[(2, 0.0), (3, 2e6)]), 3e4, &made, &left), None);
    }

    #[test]
    fn the_layer_of_a_step_is_that_of_its_largest_frame() {
        let frame = |ms: u64, bytes| Frame::of(ms as f64 / 1e3, bytes);
        let frames =
            [frame(0, 1_000), frame(100, 1_050), frame(200, 4_000), frame(300, 1_000), frame(600, 1_900)];
        assert_eq!(layers_sent(&frames, &LAYERS, 5), [0, 2, 2, 1, 1]);
        assert_eq!(made(&frames, 4), [82_000.0, 200_000.0, 0.0, 76_000.0]);
    }

    #[test]
    fn a_layer_with_room_is_waited_for() {
        // Room for the second layer (2.3 of 2 / 0.9 = 2.22) from 10 s on, and for the third from 20 s on, for ten seconds each.
        let left = list(&[(10, 2.2e6), (10, 2.3e6), (10, 4.5e6), (10, 2.2e6)]);
        let after = |sent: &[usize]| layer_after(sent, &LAYERS, &left, 0..left.len());
        assert_eq!(after(&list(&[(10, 0), (2, 0), (11, 1), (17, 2)])), Some(3.0));
        assert_eq!(after(&list(&[(14, 0), (7, 1), (19, 2)])), Some(4.0));
        assert_eq!(after(&list(&[(10, 0), (30, 1)])), Some(10.0), "the third never is: a lower bound");
        assert_eq!(after(&list(&[(40, 2)])), Some(0.0));
        assert_eq!(layer_after(&[0; 200], &LAYERS, &left, 0..50), None, "no room");
        assert_eq!(layer_after(&[0; 200], &LAYERS, &list(&[(4, 9e6), (36, 1e6)]), 0..200), None, "for 4 s");
    }

    #[test]
    fn a_layer_flaps_as_often_as_it_ends_within_half_a_minute() {
        assert_eq!(flaps(&list(&[(10, 0), (50, 2)]), 3), Some(0));
        assert_eq!(flaps(&list(&[(10, 2), (10, 1), (10, 0)]), 3), Some(1), "one layer after the other");
        assert_eq!(flaps(&list(&[(10, 2), (5, 1), (5, 2), (5, 1), (40, 2), (5, 1)]), 3), Some(2));
        assert_eq!(flaps(&list(&[(10, 2), (5, 0), (25, 2), (5, 0)]), 3), Some(1), "30 s later");
        assert_eq!(flaps(&[0; 10], 1), None);
    }
}
