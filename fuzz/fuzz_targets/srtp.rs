//! SRTP packets as they come: garbage is dropped and counted, a sealed packet is taken once and as it was, and one that was changed on
//! the way, or replayed, never.
#![no_main]

use std::net::SocketAddr;

use lastmile::wire::sdes::{MasterKey, Suite};
use lastmile::wire::{RTP_HEADER_LEN, RtpHeader};
use lastmile_net::driver::Guard;
use lastmile_net::srtp::Srtp;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (Some((&choice, data)), from) = (data.split_first(), SocketAddr::from(([10, 0, 0, 1], 5004))) else { return };
    let suite = if choice & 1 == 0 { Suite::AesCm128HmacSha1_80 } else { Suite::AeadAes128Gcm };
    let key = MasterKey::new(suite, &[7; 30]).expect("it is long enough");
    let guard = || Srtp::new(key.clone(), |_| {}).expect("a cipher");
    let (mut ours, mut theirs) = (guard(), guard());
    let rejected = theirs.rejected();
    let mut dropped = 0;
    let mut open = |bytes: &[u8]| {
        let opened = theirs.open(from, bytes);
        dropped += u64::from(opened.is_none());
        assert_eq!(rejected.get().unauthentic + rejected.get().replayed, dropped);
        opened
    };
    open(data);
    // The rest is the payload of a packet of media, and what changes it on the way.
    let [number, change, ..] = *data else { return };
    let mut packet = Vec::with_capacity(RTP_HEADER_LEN + data.len());
    RtpHeader { sequence: number.into(), ssrc: 9, payload_type: 96, ..RtpHeader::default() }.write(&mut packet);
    packet.extend(data);
    let sealed = ours.seal(&packet).expect("it is RTP");
    let mut changed = sealed.clone();
    let place = usize::from(change) % changed.len();
    changed[place] ^= 1 | number;
    assert_eq!(open(&changed), None);
    assert_eq!(open(&sealed[..sealed.len() - 1 - place % sealed.len()]), None);
    assert_eq!(open(&sealed), Some(packet));
    assert_eq!(open(&sealed), None);
});
