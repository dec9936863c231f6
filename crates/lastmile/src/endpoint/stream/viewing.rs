//! Frames of a receiver's sources on their way to its viewer.

use super::event::Decision;
use super::heard::Source;
use super::playout::{FrameSink, PlayedFrame};
use super::receiver::Receiver;
use crate::node::Output;
use crate::time::Time;
use crate::wire::{RtpPacket, write_picture_loss};

/// Sources whose frames are played at a time: each may hold 4 MiB.
const MAX_PLAYED: usize = 4;

impl Receiver {
    /// Takes in a packet of a source that has frames of video to play from its first one on.
    pub(super) fn take_frame(&mut self, at: Time, place: usize, packet: &RtpPacket<'_>) {
        let Source { repeats, playout, .. } = &self.sources[place];
        let is_video = !repeats && self.config.video == Some(packet.header.payload_type);
        if is_video && playout.is_none() && self.frees_playout() {
            self.sources[place].playout = Some(Box::default());
        }
        self.sources[place].play(at, packet, self.config.video);
    }

    /// True if one more source may have its frames played: the room of one that is not proven is taken for it.
    fn frees_playout(&mut self) -> bool {
        let playing = self.sources.iter().filter(|source| source.playout.is_some()).count();
        if playing < MAX_PLAYED {
            return true;
        }
        let unproven = self.sources.iter_mut().find(|source| source.playout.is_some() && !source.known);
        unproven.map(|source| source.playout = None).is_some()
    }

    /// Gives out the frames of a source that are due, and asks for a key frame where one is missing.
    pub(super) fn play(&mut self, now: Time, place: usize) {
        let again = self.config.nack;
        let Source { ssrc, known: true, playout: Some(playout), .. } = &mut self.sources[place] else {
            return;
        };
        let ssrc = *ssrc;
        while let Some(frame) = playout.pop(now, again) {
            if !show(&mut self.viewer, now, ssrc, &frame) {
                playout.lacks_key();
            }
        }
        if playout.asks(now) {
            let mut bytes = Vec::new();
            write_picture_loss(&mut bytes, self.config.ssrc, ssrc);
            if self.send(now, place, bytes)
                && let Some(playout) = &mut self.sources[place].playout
            {
                playout.has_asked();
            }
        }
    }

    /// Tells how a source's frames fared.
    pub(super) fn tell_viewed(&mut self, place: usize) {
        let Source { peer, ssrc, playout: Some(playout), .. } = &self.sources[place] else { return };
        let (peer, ssrc, viewed) = (*peer, *ssrc, playout.viewed());
        self.out.push_back(Output::Event(Decision::FramesViewed { peer, ssrc, viewed }));
    }

    /// The same source comes from another address since: frames of the old one that wait are older than those on the screen.
    pub(super) fn moves(&mut self, place: usize) {
        let Source { peer, ssrc, .. } = self.sources[place];
        for other in self.sources.iter_mut().filter(|other| other.ssrc == ssrc && other.peer != peer) {
            other.moved = true;
        }
    }

    /// Gives out the frames of a source that leaves, and tells how they fared.
    pub(super) fn drain(&mut self, now: Time, place: usize) {
        if self.sources[place].moved {
            return self.tell_viewed(place);
        }
        if let Source { ssrc, known: true, playout: Some(playout), .. } = &mut self.sources[place] {
            while let Some(frame) = playout.drain(now) {
                show(&mut self.viewer, now, *ssrc, &frame);
            }
            self.viewer.iter_mut().for_each(|viewer| viewer.left(*ssrc));
            self.tell_viewed(place);
        }
    }
}

/// Gives a frame to a viewer, if there is one. False if it needs a key frame.
fn show(viewer: &mut Option<Box<dyn FrameSink>>, now: Time, ssrc: u32, frame: &PlayedFrame) -> bool {
    viewer.as_mut().is_none_or(|viewer| viewer.frame(now, ssrc, frame))
}
