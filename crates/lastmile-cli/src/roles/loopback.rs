//! Two endpoints over loopback sockets, one of them recorded in memory.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::bail;
use lastmile::endpoint::{AnyEndpoint, Decided, Endpoints, any};
use lastmile::event::Event;
use lastmile::node::{Input, PortId, Recorded};
use lastmile::time::{Epoch, Time};
use lastmile_net::driver::{Driver, DriverConfig};
use lastmile_net::recording::SharedRecorder;
use lastmile_net::udp::{UdpConfig, UdpSocket};

use crate::shell::signals;

/// No run takes longer.
const MOST: Duration = Duration::from_secs(60);

/// A recording in memory.
#[derive(Clone, Default)]
pub(crate) struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    /// Takes the bytes written so far.
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
    /// Gets the endpoint's inputs and decisions.
    pub(super) recorder: Option<SharedRecorder>,
}

impl Driven {
    pub(super) fn unrecorded(endpoint: AnyEndpoint) -> Driven {
        Driven { endpoint, recorder: None }
    }
}

/// Runs the beginning endpoint until it has finished, and the answering one beside it: one host carries both.
pub(super) fn loopback(
    answer: impl FnOnce(Epoch) -> anyhow::Result<Driven>,
    begin: impl FnOnce(SocketAddr, Epoch) -> anyhow::Result<Driven>,
) -> anyhow::Result<()> {
    let open = || UdpSocket::open(&UdpConfig::new(SocketAddr::from(([127, 0, 0, 1], 0))));
    let (answering, beginning) = (open()?, open()?);
    let peer = answering.local_addr();
    let mut driver = Driver::new(vec![answering, beginning], DriverConfig::default())?;
    let epoch = driver.epoch();
    let mut recorders = Vec::new();
    let mut told = |Driven { endpoint, recorder }: Driven| {
        let number = recorders.len() as u32;
        recorders.push(recorder.clone());
        let tell = move |now: Time, input: &Input| {
            if let Some(recorder) = &recorder {
                recorder.input(now, input);
            }
        };
        (Some(number), any(Recorded::new(endpoint, tell)))
    };
    let mut host = Endpoints::new([told(answer(epoch)?), told(begin(peer, epoch)?)]);
    let mut decided = |event: &Event<Decided>| {
        let of = event.what.number.and_then(|number| recorders.get(number as usize)?.as_ref());
        if let Some(recorder) = of {
            // A recording is of one endpoint: its number there is 0.
            recorder.event(&Event { node: 0, ..event.what.clone().event(event.at, 0) });
        }
    };
    let began = Instant::now();
    driver.run(&mut host, &mut decided, signals::stop(), |host| {
        host.is_finished(PortId(1)) || began.elapsed() > MOST
    })?;
    if began.elapsed() > MOST {
        bail!("a run over the loopback did not end within {} s", MOST.as_secs());
    }
    if host.is_finished(PortId(1)) {
        // The answering endpoint is told of the end; the finished one decides nothing more.
        driver.interrupt(&mut host, &mut decided);
    }
    recorders.iter().flatten().try_for_each(|recorder| recorder.finish().map(drop))?;
    Ok(())
}
