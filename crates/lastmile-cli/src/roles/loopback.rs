//! Two endpoints over loopback sockets, one of them recorded in memory.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use lastmile::endpoint::{AnyEndpoint, Endpoint, Event};
use lastmile::node::{Input, Recorded};
use lastmile::time::{Epoch, Time};
use lastmile_net::driver::{Driver, DriverConfig};
use lastmile_net::recording::SharedRecorder;
use lastmile_net::udp::{UdpConfig, UdpSocket};

use crate::signals;

/// A recording in memory.
#[derive(Clone, Default)]
pub(crate) struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    /// What was written.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An endpoint that is to be driven.
pub(super) struct Driven {
    pub(super) endpoint: AnyEndpoint,
    /// Told what it is told, and what it decides.
    pub(super) recorder: Option<SharedRecorder>,
}

impl Driven {
    pub(super) fn unrecorded(endpoint: AnyEndpoint) -> Driven {
        Driven { endpoint, recorder: None }
    }
}

/// Runs what begins until it has finished, and what answers it beside it until then.
pub(super) fn loopback(
    answer: impl FnOnce(Epoch) -> anyhow::Result<Driven> + Send,
    begin: impl FnOnce(SocketAddr, Epoch) -> anyhow::Result<Driven>,
) -> anyhow::Result<()> {
    let open = || UdpSocket::open(&UdpConfig::new(SocketAddr::from(([127, 0, 0, 1], 0))));
    let (answering, beginning) = (open()?, open()?);
    let peer = answering.local_addr();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let answering = scope.spawn(|| drive(answering, &stop, answer));
        let ran = drive(beginning, signals::stop(), |epoch| begin(peer, epoch));
        stop.store(true, Ordering::Relaxed);
        let answered = answering.join().map_err(|_| anyhow!("the answering thread panicked"))?;
        ran.and(answered)
    })
}

fn drive(
    socket: UdpSocket,
    stop: &AtomicBool,
    make: impl FnOnce(Epoch) -> anyhow::Result<Driven>,
) -> anyhow::Result<()> {
    let mut driver = Driver::new(vec![socket], DriverConfig::default())?;
    let Driven { endpoint, recorder } = make(driver.epoch())?;
    let tell = recorder.clone();
    let mut node = Recorded::new(endpoint, move |now: Time, input: &Input| {
        if let Some(recorder) = &tell {
            recorder.input(now, input);
        }
    });
    let mut decided = |event: &Event| {
        if let Some(recorder) = &recorder {
            recorder.event(event);
        }
    };
    driver.run(&mut node, &mut decided, stop, |node| node.is_finished())?;
    if let Some(recorder) = &recorder {
        recorder.finish()?;
    }
    Ok(())
}
