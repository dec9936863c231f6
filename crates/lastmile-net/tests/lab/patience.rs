//! Patience with the machine: a lab that was late is tried again, and a machine that is late without any lab is told
//! from a lab that is late on a good machine. scripts/test.sh reads the lines printed here.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lastmile_net::lab::lateness::machine_is_on_time;

/// Runs on a machine that is on time before a story counts as refused.
const TRIES: u32 = 3;
/// Longest time that all stories of a test program together may run in vain and wait for a machine that is not on time, in
/// milliseconds: the suite has to end.
const PATIENCE_MS: u64 = 60_000;

static SPENT_MS: AtomicU64 = AtomicU64::new(0);

/// A run that was too late to be judged.
pub(crate) struct Late {
    /// The cause, in words.
    pub(crate) why: String,
    /// True if the run knows already that it was the machine's hypervisor.
    pub(crate) hypervisors: bool,
}

/// True while there is patience left.
fn is_patient(since: Instant) -> bool {
    SPENT_MS.load(Ordering::Relaxed) + (since.elapsed().as_millis() as u64) < PATIENCE_MS
}

/// Runs a story until it was on time, and gives its result. `None` once it was late too often, which is printed:
/// as refused if the lab was late on a machine that is on time without it, as unfit if there was no such machine.
pub(crate) fn patiently<T>(name: &str, mut run: impl FnMut() -> Result<T, Late>) -> Option<T> {
    let mut refused = 0;
    loop {
        let began = Instant::now();
        let late = match run() {
            Ok(found) => return Some(found),
            Err(late) => late,
        };
        let machine = machine_is_on_time();
        if machine.is_ok() && !late.hypervisors {
            refused += 1;
            if refused == TRIES {
                eprintln!("lab: refused: {name}: {}", late.why);
                return None;
            }
            continue;
        }
        while is_patient(began) && machine_is_on_time().is_err() {
            std::thread::sleep(Duration::from_secs(2));
        }
        let patient = is_patient(began);
        SPENT_MS.fetch_add(began.elapsed().as_millis() as u64, Ordering::Relaxed);
        if !patient {
            let machine = machine.err().map(|machine| format!("; {machine}"));
            eprintln!("lab: unfit: {name}: {}{}", late.why, machine.unwrap_or_default());
            return None;
        }
    }
}
