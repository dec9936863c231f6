//! Our own endpoints in the hosts of a lab, each on a thread and a socket of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use lastmile::endpoint::{AnyEndpoint, Endpoint, Event};
use lastmile::time::{Span, Time};
use lastmile_sim::roles::{Placed, Surroundings};
use lastmile_sim::runs::Recorded;

use super::run::LabRunError;
use crate::clock::now as monotonic;
use crate::driver::{Driver, DriverConfig, Waker};
use crate::udp::UdpSocket;

/// An endpoint that is to be started.
pub(super) struct Standing {
    pub(super) placed: Placed,
    /// Its place in the order of the scenario's tables.
    pub(super) index: usize,
    pub(super) socket: UdpSocket,
    pub(super) driver: DriverConfig,
    /// What one of the endpoints is recorded by.
    pub(super) recorded: Arc<Mutex<Option<Recorded>>>,
    /// Told of each decision at once.
    pub(super) tell: Sender<Event>,
}

/// An endpoint on its own thread.
struct Driven {
    driver: Driver,
    node: AnyEndpoint,
    number: u32,
    tell: Sender<Event>,
    events: Vec<Event>,
}

impl Standing {
    fn start(self) -> std::io::Result<Driven> {
        let driver = Driver::new(vec![self.socket], self.driver)?;
        // The kernel's clock is the run's, and its stamps are as fine as it can say.
        let around = Surroundings { epoch: driver.epoch(), resolution: Span::from_nanos(1), clock: None };
        let number = self.placed.place.number;
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let node =
            Recorded::make(&mut recorded, self.index, self.placed, &around).map_err(std::io::Error::other)?;
        Ok(Driven { driver, node, number, tell: self.tell, events: Vec::new() })
    }

    /// Runs it on this thread until it has finished, or is over, or somebody stops it; gives its decisions.
    pub(super) fn run(
        self,
        stop: &AtomicBool,
        is_over: impl Fn(Time) -> bool,
    ) -> Result<Vec<Event>, LabRunError> {
        let mut driven = self.start()?;
        let started = driven.driver.started();
        driven.run(stop, |node| node.is_finished() || is_over(Time::from_nanos(monotonic() - started)))?;
        Ok(driven.events)
    }
}

impl Driven {
    fn run(&mut self, stop: &AtomicBool, done: impl Fn(&AnyEndpoint) -> bool) -> std::io::Result<()> {
        let Driven { driver, node, number, tell, events } = self;
        let mut decide = |event: &Event| {
            let event = Event { node: *number, ..event.clone() };
            // A pump that has ended has nobody to tell.
            let _ = tell.send(event.clone());
            events.push(event);
        };
        let mut interrupted = false;
        driver.run(node, &mut decide, stop, |node| {
            interrupted = !node.is_finished();
            done(node)
        })?;
        // Where it was done before the endpoint was; the driver says so in all other cases.
        if interrupted && done(node) {
            driver.interrupt(node, &mut decide);
        }
        Ok(())
    }
}

/// An endpoint that answers inside a host until it is stopped.
pub(super) struct Answering {
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<std::io::Result<Vec<Event>>>>,
}

impl Answering {
    pub(super) fn start(standing: Standing) -> Result<Answering, LabRunError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = channel();
        let flag = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("lastmile-answer".into()).spawn(move || {
            let mut driven = standing.start()?;
            let _ = tell.send(driven.driver.waker());
            driven.run(&flag, |_| false)?;
            Ok(driven.events)
        })?;
        match told.recv() {
            Ok(waker) => Ok(Answering { stop, waker, thread: Some(thread) }),
            Err(_) => match thread.join() {
                Ok(Err(error)) => Err(error.into()),
                _ => Err(LabRunError::Panicked),
            },
        }
    }

    /// Ends it and gives its decisions.
    pub(super) fn finish(&mut self) -> Result<Vec<Event>, LabRunError> {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(events)) => Ok(events?),
            Some(Err(_)) => Err(LabRunError::Panicked),
            None => Ok(Vec::new()),
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        // Only after a failure is anything left to end, and that failure is what counts.
        let _ = self.finish();
    }
}
