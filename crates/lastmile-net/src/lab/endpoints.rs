//! Our own endpoints in the hosts of a lab: each host's on one thread, by one driver, told apart by their sockets.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use lastmile::endpoint::{Decided, Endpoints, Event};
use lastmile::event;
use lastmile::node::PortId;
use lastmile::time::{Span, Time};
use lastmile_sim::roles::{Placed, Surroundings};
use lastmile_sim::runs::Recorded;

use crate::clock::now as monotonic;
use crate::driver::{Driver, DriverConfig, Waker};
use crate::udp::UdpSocket;

/// A host's endpoints that are to be started.
pub(super) struct Standing {
    /// Each with its place in the order of the scenario's tables.
    pub(super) placed: Vec<(usize, Placed)>,
    /// The socket of each.
    pub(super) sockets: Vec<UdpSocket>,
    pub(super) driver: DriverConfig,
    /// The recorder of one of the endpoints, until that is made.
    pub(super) recorded: Arc<Mutex<Option<Recorded>>>,
    /// Told of each decision at once.
    pub(super) tell: Sender<Event>,
}

/// The end of the last endpoint that does not only answer others: all hosts wait for it.
#[derive(Default)]
pub(super) struct Waited {
    hosts: AtomicUsize,
    over: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
}

impl Waited {
    /// For so many hosts with such endpoints.
    pub(super) fn for_hosts(hosts: usize) -> Waited {
        Waited { hosts: hosts.into(), ..Waited::default() }
    }

    /// One of them has finished.
    fn finished(&self) {
        if self.hosts.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.end();
        }
    }

    /// Ends all, whether they have finished or not.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Waker::wake);
    }
}

impl Standing {
    /// True if the run waits for any of them.
    pub(super) fn is_waited_for(&self) -> bool {
        self.placed.iter().any(|(_, placed)| !placed.answers)
    }

    /// Runs them on this thread until nobody waits any more, or it is over; gives their decisions.
    pub(super) fn run(self, waited: &Waited, is_over: impl Fn(Time) -> bool) -> std::io::Result<Vec<Event>> {
        let mut driver = Driver::new(self.sockets, self.driver)?;
        waited.wakers.lock().unwrap_or_else(PoisonError::into_inner).push(driver.waker());
        // The kernel's clock is the run's, and its stamps are as fine as it can say.
        let around = Surroundings { epoch: driver.epoch(), resolution: Span::from_nanos(1), clock: None };
        let (mut host, mut own) = (Vec::new(), Vec::new());
        for (port, (index, placed)) in self.placed.into_iter().enumerate() {
            if !placed.answers {
                own.push(PortId(port as u16));
            }
            let number = placed.place.number;
            let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
            let made = Recorded::make(&mut recorded, index, placed, &around);
            host.push((Some(number), made.map_err(std::io::Error::other)?));
        }
        let mut host = Endpoints::new(host);
        let mut events = Vec::new();
        let mut decide = |event: &event::Event<Decided>| {
            let event = event.what.clone().event(event.at, 0);
            // A pump that has ended has nobody to tell.
            let _ = self.tell.send(event.clone());
            events.push(event);
        };
        let mut waits = !own.is_empty();
        let started = driver.started();
        let done = |host: &Endpoints| {
            if waits && own.iter().all(|&port| host.is_finished(port)) {
                waits = false;
                waited.finished();
            }
            waited.over.load(Ordering::Relaxed) || is_over(Time::from_nanos(monotonic() - started))
        };
        driver.run(&mut host, &mut decide, &AtomicBool::new(false), done)?;
        driver.interrupt(&mut host, &mut decide);
        Ok(events)
    }
}
