//! [`Recent`]: scenarios that were made last.

use std::sync::{Arc, Mutex, PoisonError};

use lastmile_sim::runs::sweep::Plan;
use lastmile_sim::scenario::Scenario;

use crate::error::Result;

/// One scenario for each thread of a pool, with its combination: the seeds of a combination follow each other.
pub(super) struct Recent(Vec<Mutex<Made>>);

/// A combination and its scenario.
type Made = Option<(usize, Arc<Scenario>)>;

impl Recent {
    pub(super) fn new(threads: usize) -> Recent {
        Recent((0..threads).map(|_| Mutex::new(None)).collect())
    }

    /// The scenario of a combination.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn of(&self, plan: &Plan<'_>, combination: usize) -> Result<Arc<Scenario>> {
        let make = || Ok(Arc::new(plan.scenario(combination)?));
        let own = rayon::current_thread_index().and_then(|thread| self.0.get(thread));
        let Some(own) = own else { return make() };
        let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
        match &*own {
            Some((of, scenario)) if *of == combination => Ok(Arc::clone(scenario)),
            _ => {
                // Not two at once: they may have long traces.
                *own = None;
                let scenario = make()?;
                *own = Some((combination, Arc::clone(&scenario)));
                Ok(scenario)
            }
        }
    }
}
