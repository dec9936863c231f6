//! Our own endpoints in the hosts of a lab: reflectors, and the sessions' initiators, each on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use lastmile::endpoint::{Measurement, Prober, ProberConfig, Reflector, ReflectorConfig};
use lastmile::event::Event;
use lastmile::node::Recorded;
use lastmile::report::StreamRecord;
use lastmile::time::Time;
use lastmile_sim::runs::{Hooks, SharedRecords};

use super::run::LabRunError;
use crate::clock::now as monotonic;
use crate::driver::{Driver, DriverConfig, Waker};
use crate::udp::UdpSocket;

/// What the endpoint of a host decides.
pub(super) struct Decided {
    /// Its host's number.
    pub(super) node: u16,
    pub(super) events: Vec<Event>,
    /// Told of each at once.
    pub(super) tell: Sender<Event>,
}

impl Decided {
    fn add(&mut self, event: &Event) {
        let event = Event { node: self.node, ..event.clone() };
        // A pump that has ended has nobody to tell.
        let _ = self.tell.send(event.clone());
        self.events.push(event);
    }
}

/// A reflector that answers inside a host until it is stopped.
pub(super) struct Serving {
    stop: Arc<AtomicBool>,
    waker: Waker,
    thread: Option<JoinHandle<std::io::Result<Vec<Event>>>>,
}

impl Serving {
    pub(super) fn start(
        socket: UdpSocket,
        config: ReflectorConfig,
        driver: DriverConfig,
        decided: Decided,
    ) -> Result<Serving, LabRunError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = channel();
        let flag = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("lastmile-serve".into()).spawn(move || {
            let mut driver = Driver::new(vec![socket], driver)?;
            let mut reflector = Reflector::new(ReflectorConfig { epoch: driver.epoch(), ..config });
            let _ = tell.send(driver.waker());
            let mut decided = decided;
            driver.run(&mut reflector, &mut |event: &Event| decided.add(event), &flag, |_| false)?;
            Ok(decided.events)
        })?;
        match told.recv() {
            Ok(waker) => Ok(Serving { stop, waker, thread: Some(thread) }),
            Err(_) => match thread.join() {
                Ok(Err(error)) => Err(error.into()),
                _ => Err(LabRunError::Panicked),
            },
        }
    }
}

impl Serving {
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

impl Drop for Serving {
    fn drop(&mut self) {
        // Only after a failure is anything left to end, and that failure is what counts.
        let _ = self.finish();
    }
}

/// One session's initiator, on a thread of its own.
pub(super) struct Measuring {
    pub(super) socket: UdpSocket,
    pub(super) driver: DriverConfig,
    pub(super) config: ProberConfig,
    pub(super) measurements: Vec<Measurement>,
    pub(super) hooks: Hooks,
    pub(super) decided: Decided,
}

impl Measuring {
    pub(super) fn run(
        mut self,
        stop: &AtomicBool,
        is_over: impl Fn(Time) -> bool,
    ) -> Result<(Vec<Event>, Vec<StreamRecord>), LabRunError> {
        let mut driver = Driver::new(vec![self.socket], self.driver)?;
        let started = driver.started();
        let records = SharedRecords::default();
        let config = ProberConfig { epoch: driver.epoch(), ..self.config };
        let mut node = self.hooks.prober(config, self.measurements, records.clone());
        let mut decided = self.decided;
        let is_over = |node: &Recorded<Prober<SharedRecords>, _>| {
            node.node().is_finished() || is_over(Time::from_nanos(monotonic() - started))
        };
        let mut decide = |event: &Event| decided.add(event);
        driver.run(&mut node, &mut decide, stop, is_over)?;
        if !node.node().is_finished() {
            driver.interrupt(&mut node, &mut decide);
        }
        Ok((decided.events, records.take()))
    }
}
